// The SystemVerilog package against literals: sizes, bit order, offsets. Verilator compares when it
// elaborates, yosys by a proof. The descriptors are written as memory dumps: byte 0 is on the right.
// Names are written with their package, since yosys knows no `import pkg::*`.
`ifdef YOSYS
`define SIZE(TYPE, BITS)  // yosys 0.23 knows no $bits of a type
`define VALUE(TYPE, NAME, BITS) TYPE NAME; assign NAME = BITS;
`define CHECK(CONDITION, WHAT) always_comb assert (CONDITION);
`else
`define VALUE(TYPE, NAME, BITS) localparam TYPE NAME = BITS;
`define SIZE(TYPE, BITS) if ($bits(TYPE) != BITS) $error("size");
`define CHECK(CONDITION, WHAT) if (!(CONDITION)) $error(WHAT);
`endif

module rio_regs_pkg_test;
  `VALUE(rio_regs_pkg::tx_desc_t, TX, 256'h1F1E1D1C1B1A1918_1716151413121110_00001000_C00C1E55_00000102_0000B8EC)
  `VALUE(rio_regs_pkg::shared_cpl_t, CPL, 256'h80000308_00000000_0000000A_00000009_00000008_C50E0100_00000007_00000006)
  `VALUE(rio_regs_pkg::dedicated_desc_t, DED, 128'h00000003_00000100_1122334455667000)
  `VALUE(rio_regs_pkg::maint_desc_t, MNT, 256'h8877665544332211_00000000_00000068_00000007_00000004_000000FF_0000FF05)
  `VALUE(rio_regs_pkg::barrier_desc_t, BAR, 2048'h3 << 8 * 184 | 2048'h5 << 8 * 16)
  `VALUE(rio_regs_pkg::qp_ring_status_t, STATUS, 32'h02_03_BEEF)

  `SIZE(rio_regs_pkg::tx_desc_t, 256)
  `SIZE(rio_regs_pkg::tx_wide_t, 256)
  `SIZE(rio_regs_pkg::tx_cpl_t, 128)
  `SIZE(rio_regs_pkg::shared_desc_t, 64)
  `SIZE(rio_regs_pkg::shared_cpl_t, 256)
  `SIZE(rio_regs_pkg::dedicated_desc_t, 128)
  `SIZE(rio_regs_pkg::entry_cpl_t, 128)
  `SIZE(rio_regs_pkg::doorbell_cpl_t, 128)
  `SIZE(rio_regs_pkg::event_cpl_t, 256)
  `SIZE(rio_regs_pkg::dma_desc_t, 256)
  `SIZE(rio_regs_pkg::maint_desc_t, 256)
  `SIZE(rio_regs_pkg::barrier_desc_t, 2048)
  `SIZE(rio_regs_pkg::barrier_cpl_t, 128)
  `SIZE(rio_regs_pkg::barrier_notice_t, 16)
  `SIZE(rio_regs_pkg::rail_status_t, 512)
  `SIZE(rio_regs_pkg::id_block_t, 32)
  `SIZE(rio_regs_pkg::window_control_t, 32)

  `CHECK(TX.control == 32'h0000B8EC && TX.dest_id == 32'h102 && TX.cookie == 32'hC00C1E55, "tx order")
  `CHECK(TX.length == 4096 && TX.addr == 64'h1716151413121110, "tx order")
  `CHECK(TX.aux == 64'h1F1E1D1C1B1A1918, "tx order")
  // 0xB8EC: op 0, inline 1, order 1, units 0, prio 3, addrs 1, ssize 14, mbox 2
  `CHECK(TX.control.op == rio_regs_pkg::TX_OP_MESSAGE && TX.control.inline_ && TX.control.order, "tx control")
  `CHECK(TX.control.units == 0 && TX.control.prio == 3 && TX.control.addrs == 1, "tx control")
  `CHECK(TX.control.ssize == 14 && TX.control.mbox == 2, "tx control")

  `CHECK(CPL.source == 6 && CPL.dest_id == 7 && CPL.length == 256 && CPL.segments == 14, "shared order")
  `CHECK(CPL.place.mbox == 5 && CPL.place.letter == 3 && CPL.index == 8, "shared place")
  `CHECK(CPL.arrival == 9 && CPL.time_ == 10 && CPL.status.phase && CPL.status.retries == 3, "shared status")
  `CHECK(CPL.status.code == rio_regs_pkg::STATUS_RECEIVE_TIMEOUT, "shared status")

  `CHECK(DED.addr == 64'h1122334455667000 && DED.size == 256 && DED.cookie == 3, "dedicated order")
  `CHECK(MNT.control.op == rio_regs_pkg::MAINT_OP_WRITE && MNT.control.local_ && MNT.control.hop_count == 255, "maint control")
  `CHECK(MNT.offset == 32'h68 && MNT.bus_addr == 64'h8877665544332211, "maint order")
  `CHECK(BAR.peers[0] == 5 && BAR.peers[1] == 0 && BAR.await == 3 && BAR.send == 0, "barrier peers")
  `CHECK(STATUS.gen == 16'hBEEF && STATUS.state == rio_regs_pkg::RING_STATE_ERROR && STATUS.error == rio_regs_pkg::RING_ERROR_TAIL, "status")

  `CHECK(rio_regs_pkg::ID_MAGIC == 0 && rio_regs_pkg::ID_MAGIC_RESET == 32'h52494F43 && rio_regs_pkg::ID_GEN_REQ == 32'h1000, "id")
  `CHECK(rio_regs_pkg::qp_tail(0, 0) == 32'h12000 && rio_regs_pkg::qp_tail(30, 15) == 32'h1F23C0 && rio_regs_pkg::qp_arm(1, 8) == 32'h23200, "qp")
  `CHECK(rio_regs_pkg::qp_ring_control(0, 1) == 32'h11064 && rio_regs_pkg::window_control(2, 7) == 32'h351E4, "rows")
  `CHECK(rio_regs_pkg::rx_map_entry(63) == 32'h37FC && rio_regs_pkg::PORT_CONTROL == 32'h5000, "rx_map, port")
  `CHECK(rio_regs_pkg::QP_RING_STATUS_ERROR_LSB == 24 && rio_regs_pkg::QP_RING_STATUS_ERROR_WIDTH == 8, "field position")
endmodule
