// The card's ABI as literals. A test that fails here means that drivers and cards in the field no
// longer fit together: do not correct the literal, undo the change of rio_card.yaml (adding is
// fine).
#include "fpga/regs/gen/rio_regs.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <type_traits>

namespace rio::regs {
namespace {

static_assert(std::endian::native == std::endian::little,
              "descriptors are little-endian; a big-endian host needs conversions");

TEST(RioRegs, FrameIsFixed) {
  EXPECT_EQ(kPageBytes, 4096u);
  EXPECT_EQ(kBarBytes, 0x200000u);
  EXPECT_EQ(kMagic, 0x52494F43u);
  EXPECT_EQ(kAllOnes, 0xFFFFFFFFu);
  EXPECT_EQ(kQpStrideBytes, 0x10000u);
  EXPECT_EQ(kMaxQps, 31u);
  EXPECT_EQ(kRingsPerQp, 16u);
  EXPECT_EQ(kDedicatedQueues, 8u);
}

TEST(RioRegs, IdentityBlock) {
  EXPECT_EQ(id::magic(), 0x0u);
  EXPECT_EQ(id::block(), 0x4u);
  EXPECT_EQ(id::next(), 0x8u);
  EXPECT_EQ(id::heartbeat(), 0xCu);
  EXPECT_EQ(id::cap_queues(), 0x18u);
  EXPECT_EQ(id::cap_messages(), 0x1Cu);
  EXPECT_EQ(id::cap_align(), 0x20u);
  EXPECT_EQ(id::cap_flags(), 0x24u);
  EXPECT_EQ(id::gen_ack(), 0x40u);
  EXPECT_EQ(id::gen_req(), 0x1000u);
  EXPECT_EQ(id::response_timeout_us(), 0x1008u);
  EXPECT_EQ(id::qp_dest_id(0), 0x1100u);
  EXPECT_EQ(id::qp_dest_id(30), 0x1178u);
  EXPECT_EQ(id::kMagicReset, 0x52494F43u);
  EXPECT_EQ(id::kBlockReset, 0x201u);
}

TEST(RioRegs, ReceiveMapAndPort) {
  EXPECT_EQ(rx_map::block(), 0x2000u);
  EXPECT_EQ(rx_map::applied(), 0x2008u);
  EXPECT_EQ(rx_map::apply(), 0x3000u);
  EXPECT_EQ(rx_map::dest_id(0), 0x3400u);
  EXPECT_EQ(rx_map::entry(63), 0x37FCu);
  EXPECT_EQ(port::link(), 0x4008u);
  EXPECT_EQ(port::rx_unmapped(), 0x402Cu);
  EXPECT_EQ(port::control(), 0x5000u);
}

TEST(RioRegs, QueuePair) {
  EXPECT_EQ(qp::block(0), 0x10000u);
  EXPECT_EQ(qp::rings(0), 0x10008u);
  EXPECT_EQ(qp::ring_status(0, 0), 0x10040u);
  EXPECT_EQ(qp::ring_status(0, 15), 0x100B8u);
  EXPECT_EQ(qp::ring_entry(0, 1), 0x1004Cu);
  EXPECT_EQ(qp::ring_base_lo(0, 0), 0x11000u);
  EXPECT_EQ(qp::ring_cbase_lo(0, 0), 0x11008u);
  EXPECT_EQ(qp::ring_size(0, 0), 0x11010u);
  EXPECT_EQ(qp::ring_start(0, 0), 0x11014u);
  EXPECT_EQ(qp::ring_irq(0, 0), 0x11018u);
  EXPECT_EQ(qp::ring_filter(0, 8), 0x1121Cu);
  EXPECT_EQ(qp::ring_source(0, 8), 0x11220u);
  EXPECT_EQ(qp::ring_control(0, 0), 0x11024u);
  EXPECT_EQ(qp::ring_format(0, 1), 0x11068u);
  EXPECT_EQ(qp::ring_coalesce(0, 0), 0x1102Cu);
  EXPECT_EQ(qp::ring_pasid(0, 0), 0x11030u);
  EXPECT_EQ(qp::ring_tph(0, 15), 0x113F4u);
  EXPECT_EQ(qp::tail(0, 0), 0x12000u);
  EXPECT_EQ(qp::tail(0, 1), 0x12040u) << "each tail has its own cache line";
  EXPECT_EQ(qp::arm(0, 0), 0x13000u);
  EXPECT_EQ(qp::tail(30, 15), 0x1F23C0u);
}

TEST(RioRegs, Windows) {
  EXPECT_EQ(window::block(0), 0x14000u);
  EXPECT_EQ(window::status(0, 7), 0x1405Cu);
  EXPECT_EQ(window::rio_lo(0, 0), 0x15000u);
  EXPECT_EQ(window::control(0, 0), 0x15024u);
  EXPECT_EQ(window::control(30, 7), 0x1F51E4u);
  EXPECT_EQ(window::pasid(0, 0), 0x15028u);
  EXPECT_LE(window::base(kMaxQps - 1) + window::kSizeBytes, kBarBytes);
}

TEST(RioRegs, BarrierAndRails) {
  EXPECT_EQ(barrier::block(0), 0x18000u);
  EXPECT_EQ(barrier::slot(0, 64), 0x19100u) << "a slot has the words of a descriptor";
  EXPECT_EQ(barrier::go(0, 15), 0x1A3C0u);
  EXPECT_EQ(barrier::resend_limit(30), 0x1FB000u);
  EXPECT_EQ(rail::block(), 0x6000u);
  EXPECT_EQ(rail::control(), 0x700Cu);
  EXPECT_EQ(sizeof(BarrierDesc), 256u) << "none crosses a page";
  EXPECT_EQ(offsetof(BarrierDesc, peers), 16u);
  EXPECT_EQ(offsetof(BarrierDesc, send), 176u);
  EXPECT_EQ(offsetof(BarrierDesc, await), 184u);
  EXPECT_EQ(sizeof(BarrierCpl), 16u);
  EXPECT_EQ(sizeof(BarrierNotice), 2u);
  EXPECT_EQ(barrier_notice::Info::round.mask(), 0x001Fu);
  EXPECT_EQ(barrier_notice::Info::epoch.mask(), 0x00E0u);
  EXPECT_EQ(barrier_notice::Info::group.mask(), 0x7F00u);
  EXPECT_EQ(barrier_notice::Info::barrier.mask(), 0x8000u);
  EXPECT_EQ(sizeof(RailStatus), 64u);
  EXPECT_EQ(offsetof(RailStatus, magic), 24u);
  EXPECT_EQ(offsetof(RailStatus, sequence_end), 60u);
  EXPECT_EQ(kRailBelowEndBytes, 64u);
}

TEST(RioRegs, RingsAndStatusCodes) {
  EXPECT_EQ(static_cast<int>(Ring::kTx), 0);
  EXPECT_EQ(static_cast<int>(Ring::kShared), 1);
  EXPECT_EQ(static_cast<int>(Ring::kDoorbell), 2);
  EXPECT_EQ(static_cast<int>(Ring::kDma), 3);
  EXPECT_EQ(static_cast<int>(Ring::kMaint), 4);
  EXPECT_EQ(static_cast<int>(Ring::kBarrier), 5);
  EXPECT_EQ(static_cast<int>(Ring::kEvent), 6);
  EXPECT_EQ(static_cast<int>(Ring::kDedicated0), 8);
  EXPECT_EQ(static_cast<int>(Status::kOk), 0);
  EXPECT_EQ(static_cast<int>(Status::kRetryExpired), 1);
  EXPECT_EQ(static_cast<int>(Status::kResponseTimeout), 2);
  EXPECT_EQ(static_cast<int>(Status::kErrorResponse), 3);
  EXPECT_EQ(static_cast<int>(Status::kBadDescriptor), 4);
  EXPECT_EQ(static_cast<int>(Status::kHostReadFailed), 5);
  EXPECT_EQ(static_cast<int>(Status::kFlushed), 6);
  EXPECT_EQ(static_cast<int>(Status::kLinkDown), 7);
  EXPECT_EQ(static_cast<int>(Status::kReceiveTimeout), 8);
  EXPECT_EQ(static_cast<int>(Status::kSizeMismatch), 9);
  EXPECT_EQ(static_cast<int>(Status::kFormat), 10);
  EXPECT_EQ(static_cast<int>(Status::kPeerFailed), 11);
}

// Descriptors as bytes in memory, and the fields that the struct reads from them.
template <class T>
T from_bytes(const unsigned char (&bytes)[sizeof(T)]) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>);
  T out;
  std::memcpy(&out, bytes, sizeof(T));
  return out;
}

TEST(RioRegs, TransmitDescriptor) {
  const auto d = from_bytes<TxDesc>({
      0xEC, 0xB8, 0x00, 0x00,                          // inline, order, prio 3, addrs 1, ssize 14
      0x02, 0x01, 0x00, 0x00,                          // destID
      0x55, 0x1E, 0x0C, 0xC0,                          // cookie
      0x00, 0x10, 0x00, 0x00,                          // 4096 bytes
      0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,  // address
      0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F,  // inline 8 to 15
  });
  using C = tx_desc::Control;
  EXPECT_EQ(C::op.get(d.control), static_cast<uint32_t>(TxOp::kMessage));
  EXPECT_EQ(C::inline_.get(d.control), 1u);
  EXPECT_EQ(C::order.get(d.control), 1u);
  EXPECT_EQ(C::units.get(d.control), 0u);
  EXPECT_EQ(C::prio.get(d.control), 3u);
  EXPECT_EQ(C::addrs.get(d.control), 1u);
  EXPECT_EQ(C::ssize.get(d.control), 14u);
  EXPECT_EQ(C::mbox.get(d.control), 2u);
  EXPECT_EQ(d.dest_id, 0x102u);
  EXPECT_EQ(d.cookie, 0xC00C1E55u);
  EXPECT_EQ(d.length, 4096u);
  EXPECT_EQ(d.addr, 0x1716151413121110u);
  EXPECT_EQ(d.aux, 0x1F1E1D1C1B1A1918u);
}

TEST(RioRegs, InlineBytesAreContiguous) {
  EXPECT_EQ(offsetof(TxDesc, addr), 16u);
  EXPECT_EQ(offsetof(TxDesc, aux), 24u);
  EXPECT_EQ(sizeof(TxDesc) - offsetof(TxDesc, addr), kInlineBytes);
  EXPECT_EQ(kInlineBytes + (kEntryUnits - 1) * sizeof(TxWide), kEntryInlineBytes);
  EXPECT_EQ(sizeof(TxWide), 32u);
  EXPECT_EQ(offsetof(TxWide, len1), 24u);
}

TEST(RioRegs, SharedCompletion) {
  const auto c = from_bytes<SharedCpl>({
      0x06, 0x00, 0x00, 0x00,  // source
      0x07, 0x00, 0x00, 0x00,  // own ID
      0x00, 0x01, 0x0E, 0xC5,  // 256 bytes, 14 segments, letter 3, mailbox 5
      0x08, 0x00, 0x00, 0x00,  // index
      0x09, 0x00, 0x00, 0x00,  // arrival
      0x0A, 0x00, 0x00, 0x00,  // time
      0x00, 0x00, 0x00, 0x00,  //
      0x08, 0x03, 0x00, 0x80,  // receive time-out, 3 retries, phase 1
  });
  EXPECT_EQ(c.source, 6u);
  EXPECT_EQ(c.dest_id, 7u);
  EXPECT_EQ(c.length, 256u);
  EXPECT_EQ(c.segments, 14u);
  EXPECT_EQ(shared_cpl::Place::mbox.get(c.place), 5u);
  EXPECT_EQ(shared_cpl::Place::letter.get(c.place), 3u);
  EXPECT_EQ(c.index, 8u);
  EXPECT_EQ(c.arrival, 9u);
  EXPECT_EQ(c.time, 10u);
  EXPECT_EQ(shared_cpl::Status::code.get(c.status), 8u);
  EXPECT_EQ(shared_cpl::Status::retries.get(c.status), 3u);
  EXPECT_EQ(shared_cpl::Status::phase.get(c.status), 1u);
}

TEST(RioRegs, OtherLayouts) {
  EXPECT_EQ(sizeof(TxCpl), 16u);
  EXPECT_EQ(sizeof(SharedDesc), 8u);
  EXPECT_EQ(sizeof(DedicatedDesc), 16u);
  EXPECT_EQ(offsetof(DedicatedDesc, size), 8u);
  EXPECT_EQ(offsetof(DedicatedDesc, cookie), 12u);
  EXPECT_EQ(sizeof(EntryCpl), 16u);
  EXPECT_EQ(offsetof(EntryCpl, bytes), 8u);
  EXPECT_EQ(sizeof(DoorbellCpl), 16u);
  EXPECT_EQ(sizeof(DmaDesc), 32u);
  EXPECT_EQ(offsetof(DmaDesc, rio_addr), 16u);
  EXPECT_EQ(offsetof(DmaDesc, bus_addr), 24u);
  EXPECT_EQ(sizeof(MaintDesc), 32u);
  EXPECT_EQ(offsetof(MaintDesc, offset), 16u);
  EXPECT_EQ(offsetof(MaintDesc, bus_addr), 24u);
  EXPECT_EQ(sizeof(EventCpl), 32u);
}

// The host looks for the phase in the same place of every completion: bit 31 of the last word.
TEST(RioRegs, PhaseIsTheTopBitOfTheLastWord) {
  EXPECT_EQ(offsetof(TxCpl, status), sizeof(TxCpl) - 4);
  EXPECT_EQ(offsetof(SharedCpl, status), sizeof(SharedCpl) - 4);
  EXPECT_EQ(offsetof(EntryCpl, status), sizeof(EntryCpl) - 4);
  EXPECT_EQ(offsetof(DoorbellCpl, status), sizeof(DoorbellCpl) - 4);
  EXPECT_EQ(offsetof(EventCpl, status), sizeof(EventCpl) - 4);
  EXPECT_EQ(offsetof(BarrierCpl, status), sizeof(BarrierCpl) - 4);
  for (const Field phase :
       {tx_cpl::Status::phase, shared_cpl::Status::phase, entry_cpl::Status::phase,
        doorbell_cpl::Status::phase, event_cpl::Status::phase, barrier_cpl::Status::phase}) {
    EXPECT_EQ(phase.mask(), 0x80000000u);
  }
}

TEST(Field, GetAndPut) {
  constexpr Field kField{8, 4};
  EXPECT_EQ(kField.max(), 0xFu);
  EXPECT_EQ(kField.mask(), 0xF00u);
  EXPECT_EQ(kField.get(0xABCDEFu), 0xDu);
  EXPECT_EQ(kField.put(0x5u), 0x500u);
  EXPECT_EQ(kField.put(0x15u), 0x500u) << "bits above the width are cut off";
  static_assert(kField.get(kField.put(9)) == 9);
}

TEST(Field, WholeWordAndTopBit) {
  constexpr Field kWord{0, 32};
  EXPECT_EQ(kWord.mask(), 0xFFFFFFFFu);
  EXPECT_EQ(kWord.get(0x89ABCDEFu), 0x89ABCDEFu);
  EXPECT_EQ(kWord.put(0x89ABCDEFu), 0x89ABCDEFu);
  constexpr Field kTop{31, 1};
  EXPECT_EQ(kTop.put(1), 0x80000000u);
  EXPECT_EQ(kTop.get(0x7FFFFFFFu), 0u);
}

TEST(Field, NeighboursDoNotTouch) {
  using Q = id::CapQueues;
  const uint32_t word = Q::qps.put(31) | Q::ring_log2_min.put(3) | Q::ring_log2_max.put(16) |
                        Q::vectors.put(255) | Q::vfs.put(127);
  EXPECT_EQ(Q::qps.get(word), 31u);
  EXPECT_EQ(Q::ring_log2_min.get(word), 3u);
  EXPECT_EQ(Q::ring_log2_max.get(word), 16u);
  EXPECT_EQ(Q::vectors.get(word), 255u);
  EXPECT_EQ(Q::vfs.get(word), 127u);
}

}  // namespace
}  // namespace rio::regs
