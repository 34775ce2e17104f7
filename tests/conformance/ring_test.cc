// Start, stop, states and errors of rings; phases and wraps. regs: RING_*, TAIL
#include <set>

#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::RingError;
using regs::RingState;
using regs::Status;

class Rings : public CardTest {
 protected:
  /// Asks for a start that must fail with `error`; then a correct one must work.
  void refused(const RingConfig& config, RingError error) {
    TestRing ring(card(), config);
    ring.request_start();
    card().run();
    EXPECT_EQ(ring.status().state, RingState::kError);
    EXPECT_EQ(ring.status().error, error);
    EXPECT_EQ(ring.status().gen, ring.gen());
    ring.stop();
    TestRing good(card(), {.ring = config.ring});
    good.start();
    good.stop();
  }
};
RIO_CONFORMANCE(Rings);

// R1, R2
TEST_P(Rings, EachRingStartsAndStops) {
  for (const uint32_t r : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u, 9u, 10u, 11u, 12u, 13u, 14u, 15u}) {
    TestRing ring(card(), {.ring = r, .clog2 = r == 5 ? 5u : 0});
    ring.start();
    ring.stop();
    ring.start();
    ring.stop();
  }
}

// R1
TEST_P(Rings, ReservedRingsDoNothing) {
  make({.barrier = false});
  for (const uint32_t r : {5u, 7u}) {
    TestRing ring(card(), {.ring = r, .clog2 = r == 5 ? 5u : 0});
    ring.request_start();
    card().run();
    EXPECT_EQ(ring.status().state, RingState::kStopped);
  }
}

TEST_P(Rings, SizesOutsideOfTheCapabilitiesAreErrors) {
  const uint32_t queues = card().read32(regs::id::cap_queues());
  const uint32_t least = regs::id::CapQueues::ring_log2_min.get(queues);
  const uint32_t most = regs::id::CapQueues::ring_log2_max.get(queues);
  refused({.log2 = least - 1}, RingError::kConfig);
  refused({.log2 = most + 1}, RingError::kConfig);
  refused({.log2 = least + 1, .clog2 = least}, RingError::kConfig);
}

TEST_P(Rings, MisalignedBaseIsAnError) {
  TestRing ring(card(), {});
  ring.entries.iova += 32;
  ring.request_start();
  card().run();
  EXPECT_EQ(ring.status().error, RingError::kConfig);
}

TEST_P(Rings, VectorOutsideOfTheCapabilitiesIsAnError) {
  make({.vectors = 4});
  refused({.irq = true, .vector = 4}, RingError::kConfig);
}

// Of what the card has no capability, a ring must not ask: it would not get it.
// B6
TEST_P(Rings, ReservedWordsThatAreNotZeroAreErrors) {
  namespace qp = regs::qp;
  ASSERT_EQ(card().read32(regs::id::cap_formats()) >> 8 & 7, 0u) << "no coalescing, PASID, TPH";
  for (const uint32_t word : {qp::ring_coalesce(0, 0), qp::ring_pasid(0, 0), qp::ring_tph(0, 0)}) {
    for (const uint32_t value : {1u, 1u << 31}) {
      TestRing ring(card(), {});
      card().write32(word, value);
      ring.request_start();
      card().run();
      EXPECT_EQ(ring.status().state, RingState::kError) << std::hex << word;
      EXPECT_EQ(ring.status().error, RingError::kConfig);
      card().write32(word, 0);
      ring.stop();
      ring.start();
      ring.stop();
    }
  }
}

// B6
TEST_P(Rings, FormatsOutsideOfTheCapabilitiesAreErrors) {
  refused({.format = 2}, RingError::kConfig);
  refused({.ring = 3, .format = 1}, RingError::kConfig);
  refused({.format = regs::qp::RingFormat::no_snoop.put(1)}, RingError::kConfig);
}

TEST_P(Rings, ACardWithoutInterruptsStillStarts) {
  make({.vectors = 0});
  tx();
}

// R6
TEST_P(Rings, UnmappedMemoryIsAnErrorAndTheRingIsNotUsed) {
  TestRing ring(card(), {});
  card().unmap(ring.entries);
  ring.request_start();
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kError);
  EXPECT_EQ(ring.status().error, RingError::kHostRead);
  ring.stop();
  TestRing other(card(), {});
  card().unmap(other.completions);
  other.request_start();
  card().run();
  EXPECT_EQ(other.status().error, RingError::kHostRead);
  other.stop();
}

// R5, O8
TEST_P(Rings, ATailTooFarAheadStopsTheRingAndNamesTheEntry) {
  TestRing& event_ring = events();
  TestRing& ring = tx({.log2 = 3});
  ring.tail += 9;
  ring.post();
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kError);
  EXPECT_EQ(ring.status().error, RingError::kTail);
  EXPECT_EQ(ring.status().entry, 9u);
  const auto told = event_ring.take_all<regs::EventCpl>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].type, 3u);  // ring error
  EXPECT_EQ(told[0].info, static_cast<uint32_t>(RingError::kTail));
  EXPECT_EQ(told[0].data0, 9u);
  EXPECT_EQ(told[0].data1, 0u);  // transmit ring
  EXPECT_TRUE(sent().empty());
  ring.stop();
  ring.start();
}

// R5
TEST_P(Rings, ATailBehindTheHeadIsTooFarAhead) {
  TestRing& ring = tx({.log2 = 3, .start = 100});
  ring.tail = 99;
  ring.post();
  card().run();
  EXPECT_EQ(ring.status().error, RingError::kTail);
}

// R15
TEST_P(Rings, AStopFlushesExactlyThePostedEntries) {
  TestRing& ring = shared();
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  post_shared(ring, a);
  post_shared(ring, b);
  card().run();
  ring.stop();
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(code_of(done[i].status), Status::kFlushed);
    EXPECT_EQ(done[i].index, i);
    EXPECT_EQ(done[i].length, 0u);
  }
}

// R3
TEST_P(Rings, AStartOnARunningRingChangesNothing) {
  TestRing& ring = tx();
  const uint32_t gen = ring.status().gen;
  card().write32(regs::qp::ring_control(0, 0), (gen + 1) | 1u << 16);
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kRunning);
  EXPECT_EQ(ring.status().gen, gen);
}

// R12
TEST_P(Rings, PhasesTellLapsApart) {
  const Buffer buffer(card(), 64);
  TestRing& ring = tx({.log2 = 3, .clog2 = 4});
  for (uint32_t i = 0; i < 100; ++i) {
    ring.put(message(0, 8, buffer.iova(), i));
    ring.post();
    answer_all(sent());
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 1u) << i;
    EXPECT_EQ(done[0].cookie, i);
    EXPECT_EQ(done[0].index, i);
    EXPECT_EQ(done[0].status >> 31, ~(i >> 4) & 1);
  }
}

// R4
TEST_P(Rings, IndicesWrapAt16And32Bits) {
  const Buffer buffer(card(), 64);
  for (const uint32_t start : {0xFFFAu, 0xFFFFFFFAu, 0x7FFFFFFDu, 0xFFFFFFFFu}) {
    TestRing ring(card(), {.log2 = 4, .start = start});
    ring.start();
    for (uint32_t i = 0; i < 40; i += 4) {
      for (uint32_t k = 0; k < 4; ++k) {
        ring.put(message(k, 8, buffer.iova(), i + k));
      }
      ring.post();
      answer_all(sent());
      const auto done = ring.take_all<regs::TxCpl>();
      ASSERT_EQ(done.size(), 4u) << start << " " << i;
      for (uint32_t k = 0; k < 4; ++k) {
        EXPECT_EQ(done[k].index, start + i + k);
        EXPECT_EQ(done[k].cookie, i + k);
      }
    }
    ring.stop();
  }
}

// R4, R10
TEST_P(Rings, CompletionOnlyRingsWrapToo) {
  for (const uint32_t start : {0xFFFAu, 0xFFFFFFFAu}) {
    TestRing ring(card(), {.ring = 2, .log2 = 3, .start = start});
    ring.start();
    for (uint32_t i = 0; i < 30; ++i) {
      ASSERT_EQ(exchange(doorbell(static_cast<uint16_t>(i * 1001), static_cast<uint8_t>(i))),
                Answer::kDone);
      regs::DoorbellCpl cpl;
      ASSERT_TRUE(ring.take(&cpl)) << i;
      EXPECT_EQ(cpl.status & 0xFFFF, (i * 1001) & 0xFFFF);
      ring.give_back();
    }
    ring.stop();
  }
}

// R7, R8, R9
TEST_P(Rings, EntriesAreCopiedAndTheirPlacesUsedAgain) {
  const Buffer buffer(card(), 64);
  buffer.fill(pattern(64));
  TestRing& ring = tx({.log2 = 3});
  for (uint32_t i = 0; i < 8; ++i) {
    ring.put(message(i, 8, buffer.iova(), i));
  }
  ring.post();
  const std::vector<Packet> flying = sent();
  ASSERT_EQ(flying.size(), 8u);
  std::memset(ring.entries.va, 0xEE, ring.entries.len_bytes);
  answer(flying[5]);
  auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u) << "in any order";
  EXPECT_EQ(done[0].cookie, 5u);
  EXPECT_EQ(done[0].index, 5u);
  answer(flying[0], Answer::kRetry);
  card().advance_us(10);
  std::vector<Packet> again = sent();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].mbox, 0u);
  EXPECT_EQ(again[0].data, flying[0].data);
  ring.put(message(8, 8, buffer.iova(), 8));  // in the place of entry 0, which still flies
  ring.post();
  again.push_back(sent().at(0));
  answer_all(again);
  for (const uint32_t i : {1, 2, 3, 4, 6, 7}) {
    answer(flying[i]);
  }
  done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 8u);
  std::set<uint32_t> cookies;
  for (const regs::TxCpl& cpl : done) {
    EXPECT_EQ(code_of(cpl.status), Status::kOk);
    EXPECT_EQ(cpl.index, cpl.cookie);
    cookies.insert(cpl.cookie);
  }
  EXPECT_EQ(cookies, (std::set<uint32_t>{0, 1, 2, 3, 4, 6, 7, 8}));
}

// W2, W3, W4, O1
TEST_P(Rings, WordsOfACompletionComeInAnyOrderBehindAllThatIsEarlier) {
  const uint32_t relaxed =
      regs::id::CapFormats::relaxed.get(card().read32(regs::id::cap_formats()));
  constexpr uint32_t kAtOnce = 4;
  constexpr size_t kWords = sizeof(regs::SharedCpl) / 4;
  TestRing& ring = shared({.log2 = 3, .format = regs::qp::RingFormat::relaxed.put(relaxed)});
  for (uint32_t first = 0; first < 200; first += kAtOnce) {
    const uint32_t phase = ~(first >> 3) << 31;
    std::vector<std::unique_ptr<Buffer>> buffers;
    uint32_t* words[kAtOnce];
    // All ones, but for the phase of the lap before.
    const auto none = [&](size_t k) { return k + 1 == kWords ? ~phase : ~0u; };
    const auto written = [&](uint32_t i) {
      size_t count = 0;
      for (size_t k = 0; k < kWords; ++k) {
        count += words[i][k] != none(k) ? 1 : 0;
      }
      return count;
    };
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      words[i] = reinterpret_cast<uint32_t*>(ring.completions.va) + (first + i) % 8 * kWords;
      for (size_t k = 0; k < kWords; ++k) {
        words[i][k] = none(k);
      }
      buffers.push_back(std::make_unique<Buffer>(card(), 4096));
      post_shared(ring, *buffers[i]);
    }
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      push(segment(static_cast<uint8_t>((first + i) % 64), 0, pattern(256, first + i)));
    }
    for (int left = 5000; left > 0 && written(kAtOnce - 1) != kWords; --left) {
      card().work();
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        if (written(i) != 0) {
          ASSERT_EQ(buffers[i]->bytes(256), pattern(256, first + i)) << first + i;
          ASSERT_TRUE(i == 0 || written(i - 1) == kWords) << first + i;
        }
      }
    }
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      regs::SharedCpl cpl{};
      ASSERT_TRUE(ring.take(&cpl));
      ASSERT_EQ(cpl.index, first + i);
      ASSERT_EQ(cpl.source, kRemoteId);
      ASSERT_EQ(cpl.length, 256u);
      ASSERT_EQ(code_of(cpl.status), Status::kOk);
    }
  }
}

// R6
TEST_P(Rings, MemoryUnmappedUnderARunningRingStopsIt) {
  TestRing& ring = tx();
  card().unmap(ring.entries);
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kError);
  EXPECT_EQ(ring.status().error, RingError::kHostRead);
  ring.stop();
  tx();
}

TEST_P(Rings, AMessageOfALostRingDoesNotCompleteInTheNextLife) {
  const Buffer buffer(card(), 64);
  TestRing& ring = tx();
  ring.put(message(0, 8, buffer.iova(), 77));
  ring.post();
  const std::vector<Packet> flying = sent();
  ASSERT_EQ(flying.size(), 1u);
  card().unmap(ring.completions);
  card().run();
  ASSERT_EQ(ring.status().state, RingState::kError);
  ring.request_stop();
  card().run();
  // A card that cannot tell where the message ends may wait for it first.
  if (ring.status().state != RingState::kStopped) {
    card().advance_us(2 * kResponseUs);
  }
  ASSERT_EQ(ring.status().state, RingState::kStopped);
  TestRing& fresh = tx();
  answer_all(flying);
  EXPECT_TRUE(fresh.take_all<regs::TxCpl>().empty());
  card().advance_us(2 * kResponseUs);
  EXPECT_TRUE(fresh.take_all<regs::TxCpl>().empty());
}

}  // namespace
}  // namespace rio::test
