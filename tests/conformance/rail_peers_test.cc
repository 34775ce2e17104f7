// Rails: the card answers other nodes by itself. card.md: Rails, For other nodes
#include <optional>

#include "tests/conformance/rail_test.hpp"

namespace rio::test {
namespace {

using regs::DmaOp;

constexpr uint64_t kPlace = ~uint64_t{0} - 63;  // the last 64 bytes of the address space
constexpr uint64_t kWindowEnd = 1ull << 48;     // of the addresses that a window holds
constexpr uint32_t kAllRights = 7u << 17;

class RailPeers : public RailCardTest {
 protected:
  static Packet question(uint32_t dest = kOwnId) {
    Packet packet = request(DmaOp::kNread, kPlace, 64);
    packet.dest = dest;
    return packet;
  }
  /// Sends a request. @return the data of the answer DONE; nullopt: another answer, or none.
  std::optional<std::vector<uint8_t>> data_of(const Packet& packet) {
    EXPECT_TRUE(card().send(packet));
    const std::vector<Packet> all = sent();
    if (all.size() != 1 || all[0].answer != Answer::kDone) {
      return std::nullopt;
    }
    EXPECT_EQ(all[0].source, packet.dest);
    EXPECT_EQ(all[0].tid, packet.tid);
    return all[0].data;
  }
  regs::RailStatus ask(uint32_t dest = kOwnId) {
    regs::RailStatus status{};
    const auto data = data_of(question(dest));
    EXPECT_TRUE(data.has_value() && data->size() == sizeof status);
    if (data.has_value() && data->size() == sizeof status) {
      std::memcpy(&status, data->data(), sizeof status);
    }
    EXPECT_EQ(status.magic, regs::kMagic);
    EXPECT_EQ(status.sequence, status.sequence_end);
    return status;
  }
};
RIO_CONFORMANCE(RailPeers);

// L13
TEST_P(RailPeers, TheCardAnswersWithoutItsHost) {
  EXPECT_EQ(ask().sequence, 0u);
  EXPECT_EQ(ask().link, card().read32(regs::port::link()));
  enable();
  EXPECT_EQ(ask().sequence, seen().sequence);
  const uint32_t last = next().sequence;
  disable();
  EXPECT_EQ(ask().sequence, last);
  EXPECT_EQ(card().refused_accesses(), 0u);
}

// L13
TEST_P(RailPeers, TheStatusIsThatOfTheMoment) {
  const Buffer buffer(card(), 256);
  tx().put(message(0, 250, buffer.iova()));
  tx_->post();
  const std::vector<Packet> flying = sent();
  EXPECT_EQ(ask().tx_bytes, 250u);
  answer_all(flying);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(ask().tx_bytes, 0u);
}

// L13
TEST_P(RailPeers, EachDestIdOfTheMapHasIt) {
  make({.queue_pairs = 2});
  EXPECT_EQ(ask(kOwnId + 1).tx_bytes, 0u);
  map_entry(1, kOwnId + 1, 1, 1, false, false);
  apply_map();
  EXPECT_EQ(ask(kOwnId + 1).tx_bytes, 0u) << "one that has no requests";
  Packet stranger = question(0x4444);
  EXPECT_EQ(exchange(stranger), Answer::kError);
}

// L13, L14
TEST_P(RailPeers, NoWindowHasTheseBytes) {
  const Buffer buffer(card(), 256);
  buffer.fill(pattern(256));
  open_window(0, buffer, kWindowEnd - 256, 256, kAllRights);
  ask();
  const uint64_t top = 0xFFFFull << 48;
  EXPECT_EQ(data_of(request(DmaOp::kNread, kPlace - 64, 64)),
            std::vector<uint8_t>(buffer.va() + 128, buffer.va() + 192));
  EXPECT_EQ(data_of(request(DmaOp::kNread, (kWindowEnd - 64) | (top << 1), 64)),
            std::vector<uint8_t>(buffer.va() + 192, buffer.va() + 256))
      << "with another key it is no place at the end";
  const auto refused = [this](DmaOp op, uint64_t address, uint32_t length) {
    const bool has_data = op == DmaOp::kNwriteR || op == DmaOp::kAtomicSwap;
    return exchange(request(op, address, length,
                            has_data ? pattern(length, 9) : std::vector<uint8_t>())) ==
           Answer::kError;
  };
  for (const uint32_t length : {1u, 8u, 32u, 63u, 65u, 128u, 256u}) {
    EXPECT_TRUE(refused(DmaOp::kNread, kPlace, length)) << length;
  }
  for (const uint64_t address :
       {kPlace - 63, kPlace - 8, kPlace - 1, kPlace + 1, kPlace + 8, kPlace + 63}) {
    EXPECT_TRUE(refused(DmaOp::kNread, address, 64)) << address - kPlace;
  }
  EXPECT_TRUE(refused(DmaOp::kNread, ~uint64_t{0}, 1));
  EXPECT_TRUE(refused(DmaOp::kNwriteR, kPlace, 64));
  EXPECT_TRUE(refused(DmaOp::kNwriteR, kPlace - 8, 16));
  EXPECT_TRUE(refused(DmaOp::kAtomicInc, kPlace, 4));
  EXPECT_TRUE(refused(DmaOp::kAtomicSwap, kPlace + 60, 4));
  for (const DmaOp op : {DmaOp::kNwrite, DmaOp::kSwrite}) {
    EXPECT_EQ(exchange(request(op, kPlace, 64, pattern(64, 9))), std::nullopt);
  }
  EXPECT_EQ(buffer.bytes(256), pattern(256)) << "nothing was written";
}

// L14
TEST_P(RailPeers, WrongRequestsAreEventsAndStrangersAreCounted) {
  TestRing& told = events();
  EXPECT_EQ(exchange(request(DmaOp::kNread, kPlace, 32)), Answer::kError);
  const auto all = told.take_all<regs::EventCpl>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].type, 5u);
  EXPECT_EQ(all[0].data0, 0xFFFFFFC0u);
  EXPECT_EQ(all[0].data1, 0xFFFFFFFFu);
  const uint32_t unmapped = card().read32(regs::port::rx_unmapped());
  EXPECT_EQ(exchange(question(0x4444)), Answer::kError);
  card().run();
  EXPECT_EQ(card().read32(regs::port::rx_unmapped()), unmapped + 1);
}

// L15
TEST_P(RailPeers, WithoutTheBlockTheAddressesAreOrdinary) {
  make({.rail = false});
  EXPECT_EQ(exchange(question()), Answer::kError);
  const Buffer buffer(card(), 64);
  buffer.fill(pattern(64));
  open_window(0, buffer, kWindowEnd - 64, 64, kAllRights);
  EXPECT_EQ(data_of(question()), pattern(64));
}

}  // namespace
}  // namespace rio::test
