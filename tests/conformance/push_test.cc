// Push mode: entries in slots of the BAR. card.md: Sending
#include "base/random.hpp"
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::Status;
using C = regs::tx_desc::Control;
using Words = std::vector<TestRing::SlotWord>;

constexpr uint32_t kSlotsLog2 = 2;
constexpr uint32_t kPush = regs::qp::RingFormat::push.put(1);

class Push : public CardTest {
 protected:
  TestRing& open(RingConfig config = {.log2 = 5, .format = kPush},
                 const CardOptions& options = {.push_slots_log2 = kSlotsLog2}) {
    make(options);
    buffer_ = std::make_unique<Buffer>(card(), 4096);
    buffer_->fill(pattern(4096));
    return tx(config);
  }
  /// An entry by address to mailbox 1, whose cookie and length say which it is.
  regs::TxDesc by_address(uint32_t which) {
    return message(1, 8 * (which + 1), buffer_->iova(), which);
  }
  void write(const Words& words) {
    for (const auto& [offset, value] : words) {
      card().write32(offset, value);
    }
  }
  void push(TestRing& ring, const regs::TxDesc& desc, const std::vector<uint8_t>& second = {}) {
    write(ring.push(desc, kSlotsLog2, second));
  }
  /// Expects that the card sends these messages of by_address() now, and answers them.
  void expect_sent(const std::vector<uint32_t>& which) {
    const std::vector<Packet> packets = sent();
    std::vector<uint32_t> seen;
    for (const Packet& packet : packets) {
      seen.push_back(static_cast<uint32_t>(packet.data.size()) / 8 - 1);
    }
    EXPECT_EQ(seen, which);
    answer_all(packets);
  }
  void expect_done(TestRing& ring, const std::vector<uint32_t>& cookies,
                   Status status = Status::kOk) {
    std::vector<uint32_t> seen;
    for (const regs::TxCpl& cpl : ring.take_all<regs::TxCpl>()) {
      seen.push_back(cpl.cookie);
      EXPECT_EQ(code_of(cpl.status), status);
    }
    EXPECT_EQ(seen, cookies);
  }

  std::unique_ptr<Buffer> buffer_;
};
RIO_CONFORMANCE(Push);

// T27
TEST_P(Push, AnEntryInASlotIsSentWithoutTail) {
  TestRing& ring = open();
  EXPECT_EQ(regs::id::CapPush::slots_log2.get(card().read32(regs::id::cap_push())), kSlotsLog2);
  push(ring, by_address(0));
  expect_sent({0});
  push(ring, by_address(1));
  push(ring, by_address(2));
  expect_sent({1, 2});
  expect_done(ring, {0, 1, 2});
}

/// Tail and slot come in any order: the entry is sent once.
// T27
TEST_P(Push, AnEntryInBothIsSentOnce) {
  TestRing& ring = open();
  push(ring, by_address(0));
  ring.post();
  expect_sent({0});
  const Words late = ring.push(by_address(1), kSlotsLog2);
  ring.post();
  expect_sent({1});
  write(late);
  expect_sent({});
  write(late);
  expect_sent({});
  push(ring, by_address(2));
  expect_sent({2});
  ring.post();
  expect_sent({});
  expect_done(ring, {0, 1, 2});
}

// T28
TEST_P(Push, WithoutTheCapabilityOrForAnotherRingItIsAnError) {
  const auto refused = [this](TestRing& ring) {
    ring.request_start();
    card().run();
    EXPECT_EQ(ring.status().state, regs::RingState::kError);
    EXPECT_EQ(ring.status().error, regs::RingError::kConfig);
  };
  make({});
  EXPECT_EQ(card().read32(regs::id::cap_push()), 0u);
  TestRing plain(card(), {.ring = 0, .format = kPush});
  refused(plain);
  make({.push_slots_log2 = kSlotsLog2});
  for (const uint32_t number : {1u, 3u, 8u}) {
    TestRing other(card(), {.ring = number, .format = kPush});
    refused(other);
  }
}

/// Each word alone, in any order, with steps between: the card takes a slot when all are there.
// T29
TEST_P(Push, ASlotMayComeWordByWordInAnyOrder) {
  TestRing& ring = open({.log2 = 5, .start = 0xFFFFFFF0, .format = kPush});
  base::Random random(9);
  for (uint32_t which = 0; which < 40; ++which) {
    const uint8_t top = 0x80;
    std::vector<uint8_t> second = pattern(28, which);
    second[3] |= top;  // a bit whose place the phase has
    regs::TxDesc desc =
        message(1, 44, 0xFEDCBA9887654321, 0x80000000 | which, kSsize256, C::inline_.put(1));
    desc.aux = 0x8000000080000001;
    Words words = ring.push(desc, kSlotsLog2, second);
    for (size_t left = words.size(); left > 0; --left) {
      std::swap(words[left - 1], words[random.below(static_cast<uint32_t>(left))]);
      card().write32(words[left - 1].offset, words[left - 1].value);
      if (random.below(3) == 0) {
        card().write32(words[left - 1].offset, words[left - 1].value);  // once more
      }
      card().work();
      if (left > 1 && random.below(8) == 0) {
        ASSERT_TRUE(sent().empty()) << left << " words are missing";
      }
    }
    const std::vector<Packet> packets = sent();
    ASSERT_EQ(packets.size(), 1u) << which;
    std::vector<uint8_t> expected(reinterpret_cast<uint8_t*>(&desc.addr),
                                  reinterpret_cast<uint8_t*>(&desc.addr) + 16);
    expected.insert(expected.end(), second.begin(), second.end());
    expected.resize(48);  // padded
    EXPECT_EQ(packets[0].data, expected);
    answer_all(packets);
    expect_done(ring, {0x80000000 | which});
  }
}

/// Entries keep their order whichever way they come. The index in the slot says that earlier ones
/// are still to come.
// T30
TEST_P(Push, SlotsAndRingKeepOneOrder) {
  TestRing& ring = open({.log2 = 5, .start = 0xFFFFFFFD, .format = kPush});
  ring.put(by_address(0));
  const uint32_t first = ring.tail;
  push(ring, by_address(1));
  expect_sent({});
  card().write32(regs::qp::tail(0, 0), first);
  expect_sent({0, 1});
  ring.put(by_address(2));
  push(ring, by_address(3));
  ring.put(by_address(4));
  ring.post();
  expect_sent({2, 3, 4});
  expect_done(ring, {0, 1, 2, 3, 4});
}

/// After an entry that the card took from the ring, the next one is in the next slot.
// T31
TEST_P(Push, AnEntryFromTheRingPassesItsSlot) {
  TestRing& ring = open();
  for (uint32_t round = 0; round < 7; ++round) {
    static_cast<void>(ring.push(by_address(2 * round), kSlotsLog2));  // its slot is late
    ring.post();
    expect_sent({2 * round});
    push(ring, by_address(2 * round + 1));
    expect_sent({2 * round + 1});
    expect_done(ring, {2 * round, 2 * round + 1});
  }
}

/// TAIL is not written for many laps of the ring, and is no error.
// T32
TEST_P(Push, TailMayLieBehind) {
  TestRing& ring = open({.log2 = 3, .start = 0xFFFFFFF0, .format = kPush});
  for (uint32_t which = 0; which < 30; ++which) {
    push(ring, by_address(which));
    expect_sent({which});
    expect_done(ring, {which});
  }
  ring.put(by_address(30));
  ring.post();
  expect_sent({30});
  ring.tail += 100;
  ring.post();
  card().run();
  EXPECT_EQ(ring.status().error, regs::RingError::kTail);
}

// T33
TEST_P(Push, AnEntryThatDoesNotFitIsRefused) {
  TestRing& ring = open();
  regs::TxDesc desc = message(1, 45, 1, 70, kSsize256, C::inline_.put(1));
  push(ring, desc, pattern(28));
  expect_done(ring, {70}, Status::kBadDescriptor);
  push(ring, message(1, 24, buffer_->iova(), 71, kSsize256, C::units.put(2)));
  expect_done(ring, {71}, Status::kBadDescriptor);
  ring.tail += 2;  // the units that it claims
  // Three addresses fit; the length of a fourth one would not.
  for (const uint32_t addrs : {3u, 4u}) {
    desc = message(1, 8 * addrs, buffer_->iova(), addrs, kSsize256, C::addrs.put(addrs));
    desc.aux = 8;
    const regs::TxWide wide = {
        buffer_->iova() + 64, buffer_->iova() + 128, buffer_->iova() + 192, 8, 8, 8, 0};
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&wide);
    push(ring, desc, {bytes, bytes + 28});
    if (addrs == 3) {
      expect_sent({2});
    }
    expect_done(ring, {addrs}, addrs == 3 ? Status::kOk : Status::kBadDescriptor);
  }
}

// T34
TEST_P(Push, AStopFlushesWhatIsInSlots) {
  TestRing& ring = open();
  card().set_link(false);
  card().run();
  push(ring, by_address(0));
  expect_done(ring, {0}, Status::kLinkDown);
  push(ring, by_address(1));
  push(ring, by_address(2));
  Words half = ring.push(by_address(3), kSlotsLog2);
  half.resize(7);
  write(half);
  ring.request_stop();
  for (const regs::TxCpl& cpl : ring.take_all<regs::TxCpl>()) {
    EXPECT_TRUE(code_of(cpl.status) == Status::kFlushed ||
                code_of(cpl.status) == Status::kLinkDown);
    EXPECT_LT(cpl.cookie, 3u);
  }
  EXPECT_EQ(ring.status().state, regs::RingState::kStopped);
  EXPECT_EQ(ring.cidx, 3u);
  card().set_link(true);
  ring.config().start = 0x100;
  ring.start();
  expect_sent({});
  push(ring, by_address(4));
  expect_sent({4});
}

/// A waiting entry that came by a slot waits inside the card, and others pass it. Its slot is free:
/// a later entry has completed.
// T15, T31
TEST_P(Push, OthersPassAWaitingEntry) {
  TestRing& ring = open();
  for (uint32_t i = 0; i < 4; ++i) {
    push(ring, message(9, 8, buffer_->iova(), i));
  }
  const std::vector<Packet> flying = sent();
  ASSERT_EQ(flying.size(), 4u);
  push(ring, message(9, 16, buffer_->iova(), 4));
  push(ring, message(10, 24, buffer_->iova(), 5));
  for (uint32_t i = 0; i < 3 << kSlotsLog2; ++i) {
    expect_sent({2});
    expect_done(ring, {5 + i});
    push(ring, message(10, 24, buffer_->iova(), 6 + i));
  }
  expect_sent({2});
  answer(flying[1]);
  expect_sent({1});
}

}  // namespace
}  // namespace rio::test
