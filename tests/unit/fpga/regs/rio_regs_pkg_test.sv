// The SystemVerilog package against literals, when it is elaborated: sizes, bit order, offsets.
// The descriptors are written as memory dumps: byte 0 is on the right.
module rio_regs_pkg_test;
  import rio_regs_pkg::*;

  localparam tx_desc_t TX = 256'h1F1E1D1C1B1A1918_1716151413121110_00001000_C00C1E55_00000102_0000B8EC;
  localparam shared_cpl_t CPL = 256'h80000308_00000000_0000000A_00000009_00000008_C50E0100_00000007_00000006;
  localparam dedicated_desc_t DED = 128'h00000003_00000100_1122334455667000;
  localparam maint_desc_t MNT = 256'h8877665544332211_00000000_00000068_00000007_00000004_000000FF_0000FF05;
  localparam barrier_desc_t BAR = 1536'h5 << 8 * 16;
  localparam qp_ring_status_t STATUS = 32'h02_03_BEEF;

  if ($bits(tx_desc_t) != 256 || $bits(tx_wide_t) != 256 || $bits(tx_cpl_t) != 128) $error("tx sizes");
  if ($bits(shared_desc_t) != 64 || $bits(shared_cpl_t) != 256) $error("shared sizes");
  if ($bits(dedicated_desc_t) != 128 || $bits(entry_cpl_t) != 128) $error("dedicated sizes");
  if ($bits(doorbell_cpl_t) != 128 || $bits(event_cpl_t) != 256) $error("doorbell, event sizes");
  if ($bits(dma_desc_t) != 256 || $bits(maint_desc_t) != 256) $error("dma, maint sizes");
  if ($bits(barrier_desc_t) != 1536) $error("barrier size");
  if ($bits(id_block_t) != 32 || $bits(window_control_t) != 32) $error("register sizes");

  if (TX.control != 32'h0000B8EC || TX.dest_id != 32'h102 || TX.cookie != 32'hC00C1E55) $error("tx order");
  if (TX.length != 4096 || TX.addr != 64'h1716151413121110) $error("tx order");
  if (TX.aux != 64'h1F1E1D1C1B1A1918) $error("tx order");
  // 0xB8EC: op 0, inline 1, order 1, wide 0, prio 3, addrs 1, ssize 14, mbox 2
  if (TX.control.op != TX_OP_MESSAGE || !TX.control.inline_ || !TX.control.order) $error("tx control");
  if (TX.control.wide || TX.control.prio != 3 || TX.control.addrs != 1) $error("tx control");
  if (TX.control.ssize != 14 || TX.control.mbox != 2) $error("tx control");

  if (CPL.source != 6 || CPL.dest_id != 7 || CPL.length != 256 || CPL.segments != 14) $error("shared order");
  if (CPL.place.mbox != 5 || CPL.place.letter != 3 || CPL.index != 8) $error("shared place");
  if (CPL.arrival != 9 || CPL.time_ != 10 || !CPL.status.phase || CPL.status.retries != 3) $error("shared status");
  if (CPL.status.code != STATUS_RECEIVE_TIMEOUT) $error("shared status");

  if (DED.addr != 64'h1122334455667000 || DED.size != 256 || DED.cookie != 3) $error("dedicated order");
  if (MNT.control.op != MAINT_OP_WRITE || !MNT.control.local_ || MNT.control.hop_count != 255) $error("maint control");
  if (MNT.offset != 32'h68 || MNT.bus_addr != 64'h8877665544332211) $error("maint order");
  if (BAR.peers[0] != 5 || BAR.peers[1] != 0) $error("barrier peers");
  if (STATUS.gen != 16'hBEEF || STATUS.state != RING_STATE_ERROR || STATUS.error != RING_ERROR_TAIL) $error("status");

  if (ID_MAGIC != 0 || ID_MAGIC_RESET != 32'h52494F43 || ID_GEN_REQ != 32'h1000) $error("id");
  if (qp_tail(0, 0) != 32'h12000 || qp_tail(30, 15) != 32'h1F23C0 || qp_arm(1, 8) != 32'h23200) $error("qp");
  if (qp_ring_control(0, 1) != 32'h11064 || window_control(2, 7) != 32'h351E4) $error("rows");
  if (rx_map_entry(63) != 32'h37FC || PORT_CONTROL != 32'h5000) $error("rx_map, port");
  if (QP_RING_STATUS_ERROR_LSB != 24 || QP_RING_STATUS_ERROR_WIDTH != 8) $error("field position");
endmodule
