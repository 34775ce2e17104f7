// The SystemVerilog package against literals: sizes, bit order, offsets. Verilator compares when it
// elaborates, yosys by a proof. The descriptors are written as memory dumps: byte 0 is on the right.
// Names are written with their package, since yosys knows no `import pkg::*`.
`ifdef YOSYS
`define SIZE(NAME, BITS)  // yosys 0.23 knows no $bits of a type
`define VALUE(TYPE, NAME, BITS) TYPE NAME; assign NAME = BITS;
`define CHECK(NAME, CONDITION) always_comb assert (CONDITION);
`else
`define VALUE(TYPE, NAME, BITS) localparam TYPE NAME = BITS;
// Each block of a condition has a name: without one, Verilator 5.032 warns.
`define SIZE(NAME, BITS) if ($bits(rio_regs_pkg::NAME``_t) != BITS) begin : gen_size_``NAME $error(`"NAME`"); end
`define CHECK(NAME, CONDITION) if (!(CONDITION)) begin : gen_``NAME $error(`"NAME`"); end
`endif

module rio_regs_pkg_test;
  `VALUE(rio_regs_pkg::tx_desc_t, TX, 256'h1F1E1D1C1B1A1918_1716151413121110_00001000_C00C1E55_00000102_0000B8EC)
  `VALUE(rio_regs_pkg::shared_cpl_t, CPL, 256'h80000308_00000000_0000000A_00000009_00000008_C50E0100_00000007_00000006)
  `VALUE(rio_regs_pkg::dedicated_desc_t, DED, 128'h00000003_00000100_1122334455667000)
  `VALUE(rio_regs_pkg::maint_desc_t, MNT, 256'h8877665544332211_00000000_00000068_00000007_00000004_000000FF_0000FF05)
  `VALUE(rio_regs_pkg::barrier_desc_t, BAR, 2048'h3 << 8 * 184 | 2048'h5 << 8 * 16)
  `VALUE(rio_regs_pkg::qp_ring_status_t, STATUS, 32'h02_03_BEEF)

  `SIZE(tx_desc, 256)
  `SIZE(tx_wide, 256)
  `SIZE(tx_cpl, 128)
  `SIZE(shared_desc, 64)
  `SIZE(shared_cpl, 256)
  `SIZE(dedicated_desc, 128)
  `SIZE(entry_cpl, 128)
  `SIZE(doorbell_cpl, 128)
  `SIZE(event_cpl, 256)
  `SIZE(dma_desc, 256)
  `SIZE(maint_desc, 256)
  `SIZE(barrier_desc, 2048)
  `SIZE(barrier_cpl, 128)
  `SIZE(barrier_notice, 16)
  `SIZE(rail_status, 512)
  `SIZE(id_block, 32)
  `SIZE(window_control, 32)

  `CHECK(tx_order, TX.control == 32'h0000B8EC && TX.dest_id == 32'h102 && TX.cookie == 32'hC00C1E55)
  `CHECK(tx_address, TX.length == 4096 && TX.addr == 64'h1716151413121110)
  `CHECK(tx_aux, TX.aux == 64'h1F1E1D1C1B1A1918)
  // 0xB8EC: op 0, inline 1, order 1, units 0, prio 3, addrs 1, ssize 14, mbox 2
  `CHECK(tx_control, TX.control.op == rio_regs_pkg::TX_OP_MESSAGE && TX.control.inline_ && TX.control.order)
  `CHECK(tx_shape, TX.control.units == 0 && TX.control.prio == 3 && TX.control.addrs == 1)
  `CHECK(tx_mailbox, TX.control.ssize == 14 && TX.control.mbox == 2)

  `CHECK(shared_order, CPL.source == 6 && CPL.dest_id == 7 && CPL.length == 256 && CPL.segments == 14)
  `CHECK(shared_place, CPL.place.mbox == 5 && CPL.place.letter == 3 && CPL.index == 8)
  `CHECK(shared_status, CPL.arrival == 9 && CPL.time_ == 10 && CPL.status.phase && CPL.status.retries == 3)
  `CHECK(shared_code, CPL.status.code == rio_regs_pkg::STATUS_RECEIVE_TIMEOUT)

  `CHECK(dedicated_order, DED.addr == 64'h1122334455667000 && DED.size == 256 && DED.cookie == 3)
  `CHECK(maint_control, MNT.control.op == rio_regs_pkg::MAINT_OP_WRITE && MNT.control.local_ && MNT.control.hop_count == 255)
  `CHECK(maint_order, MNT.offset == 32'h68 && MNT.bus_addr == 64'h8877665544332211)
  `CHECK(barrier_peers, BAR.peers[0] == 5 && BAR.peers[1] == 0 && BAR.await == 3 && BAR.send == 0)
  `CHECK(status, STATUS.gen == 16'hBEEF && STATUS.state == rio_regs_pkg::RING_STATE_ERROR && STATUS.error == rio_regs_pkg::RING_ERROR_TAIL)

  `CHECK(id, rio_regs_pkg::ID_MAGIC == 0 && rio_regs_pkg::ID_MAGIC_RESET == 32'h52494F43 && rio_regs_pkg::ID_GEN_REQ == 32'h1000)
  `CHECK(qp, rio_regs_pkg::qp_tail(0, 0) == 32'h12000 && rio_regs_pkg::qp_tail(30, 15) == 32'h1F23C0 && rio_regs_pkg::qp_arm(1, 8) == 32'h23200)
  `CHECK(rows, rio_regs_pkg::qp_ring_control(0, 1) == 32'h11064 && rio_regs_pkg::window_control(2, 7) == 32'h351E4)
  `CHECK(rx_map_port, rio_regs_pkg::rx_map_entry(63) == 32'h37FC && rio_regs_pkg::PORT_CONTROL == 32'h5000)
  `CHECK(field_position, rio_regs_pkg::QP_RING_STATUS_ERROR_LSB == 24 && rio_regs_pkg::QP_RING_STATUS_ERROR_WIDTH == 8)
endmodule
