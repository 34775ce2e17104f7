// Large data over cards that lose, refuse, delay and reorder: a transfer that ends well has arrived
// whole, and nothing is written after the end.
#include <algorithm>
#include <random>

#include "base/clock.hpp"
#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

struct Outcome {
  uint32_t good = 0;
  uint32_t failed = 0;
};

/// Transfers one after the other, in both directions at once. @param rate of faults at each action
/// of a card.
void run(const std::string& options, uint32_t seed, uint32_t rounds, uint64_t bytes_max,
         Outcome* outcome) {
  SCOPED_TRACE(options);
  const std::string wire = "emu:LargeFault" + std::to_string(seed) + options;
  Node a(wire, 5);
  Node b(wire, 6);
  std::mt19937 random(seed);
  for (uint32_t i = 0; i < rounds; ++i) {
    const uint64_t bytes = 1 + random() % bytes_max;
    const Area from(bytes, random() % 4096, 0x11);
    const Area to(bytes, random() % 4096, 0x22);
    fill(from.at(), bytes, i);
    SendTransfer sent;
    RecvTransfer received;
    Node& source = i % 2 == 0 ? a : b;
    Node& sink = i % 2 == 0 ? b : a;
    ASSERT_EQ(send(source, sink, from, sent), 0);
    ASSERT_TRUE(work({&a, &b}, [&] { return sink.has_request(); })) << i;
    sink.context->receive_large(sink.context->take_request(), to.at(), bytes, received);
    ASSERT_TRUE(work({&a, &b}, [&] { return sent.done && received.done; }))
        << i << ": " << bytes << " bytes, sender " << sent.done << " receiver " << received.done
        << " state " << static_cast<int>(sent.grant.state()) << " attempt "
        << int{sent.grant.attempt()} << " out " << sent.grant.out() << "; "
        << static_cast<int>(received.grant.state()) << " attempt " << int{received.grant.attempt()}
        << " status " << received.status << " again " << source.port->stats().again << " "
        << sink.port->stats().again;
    if (received.status == 0) {
      ++outcome->good;
      ASSERT_EQ(std::memcmp(from.at(), to.at(), bytes), 0) << i;
    } else {
      ++outcome->failed;
      ASSERT_EQ(received.status, -EIO);
    }
    ASSERT_TRUE(sent.status == 0 || sent.status == -EIO) << sent.status;
    ASSERT_TRUE(sent.status == -EIO || received.status == 0) << "it was sent and not received";
    ASSERT_TRUE(to.guarded(bytes)) << i;
  }
  EXPECT_EQ(a.port->stats().cut_off + b.port->stats().cut_off, 0u);
}

/// @param rate as in a card's name. @param seeds number of cards, with 8 transfers each.
Outcome run_seeds(const std::string& mode, const std::string& rate, uint32_t seeds,
                  uint64_t bytes_max) {
  const uint32_t first = rio::test::first_seed();
  Outcome outcome;
  for (uint32_t seed = first; seed != first + seeds && !::testing::Test::HasFatalFailure();
       ++seed) {
    std::string faults = mode;
    faults += ",faults=";
    faults += std::to_string(seed);
    faults += ':';
    faults += rate;
    run(faults, seed, 8, bytes_max, &outcome);
  }
  return outcome;
}

// The faults are rare, and the transfers so long that none would arrive in one attempt.
TEST(LargeFault, ExactCardsThatFail) {
  const Outcome outcome = run_seeds(",exact=1", "0.0005", 2, 1 << 20);
  EXPECT_GT(outcome.good, outcome.failed);
}

TEST(LargeFault, WholeMessagesThatFail) {
  const Outcome outcome = run_seeds("", "0.0005", 2, 1 << 20);
  EXPECT_GT(outcome.good, outcome.failed);
}

// The fault rate of the tests of small messages: half of the messages of 16 segments fail, and some
// transfers fail eight times in a row.
TEST(LargeFault, ExactCardsThatFailOften) {
  EXPECT_NE(run_seeds(",exact=1", "0.01", 2, 40000).good, 0u);
}

TEST(LargeFault, CardsOnABusThatDelaysFailOften) {
  const uint32_t bus = rio::test::first_seed() | 1u;
  EXPECT_NE(run_seeds(",pcie=" + std::to_string(bus), "0.005", 2, 40000).good, 0u);
}

TEST(LargeFault, ABusThatDelaysAndReorders) {
  const uint32_t first = rio::test::first_seed();
  Outcome outcome;
  for (uint32_t seed = first; seed != first + 3 && !::testing::Test::HasFatalFailure(); ++seed) {
    run(",pcie=" + std::to_string(seed | 1u), seed, 10, 300000, &outcome);
  }
  EXPECT_EQ(outcome.failed, 0u);
}

// A message without an answer may still land while its letter rests. The receiver is told only
// afterwards that the attempt is over, and keeps the memory until then.
TEST(LargeFault, AnAttemptThatEndsInDoubtRests) {
  constexpr uint64_t kBytes =
      2 * 4096;  // at most as many messages as letters: none waits for a letter
  Node a("emu:LargeFaultDoubt", 5);
  Node b("emu:LargeFaultDoubt", 6);
  const Area from(kBytes, 0, 0x11);
  const Area to(kBytes, 0, 0x22);
  fill(from.at(), kBytes, 1);
  SendTransfer sent;
  RecvTransfer received;
  ASSERT_TRUE(begin(a, b, from, sent, to, received));
  ASSERT_TRUE(work({&a, &b}, [&] { return sent.grant.out() != 0; }));
  const auto set_faults = [&](double rate) {
    for (const Node* node : {&a, &b}) {
      pmd::Bus& bus = node->port->endpoint().card().bus();
      dynamic_cast<pmd::EmuBus&>(bus).card()->set_faults(
          {1, rate, static_cast<uint32_t>(model::Fault::kLostResponse)});
    }
  };
  set_faults(1);
  uint64_t before_ns = 0;  // when the doubt was known
  ASSERT_TRUE(work({&a, &b}, [&] {
    const bool known = sent.grant.state() != SendGrant::State::kSending;
    before_ns = known ? before_ns : base::now_ns();
    return known;
  }));
  EXPECT_EQ(sent.grant.state(), SendGrant::State::kDraining);
  set_faults(0);
  ASSERT_TRUE(work({&a, &b}, [&] { return sent.grant.attempt() == 1; }));
  const uint64_t rest_us = base::now_ns() / 1000 - before_ns / 1000;
  EXPECT_GE(rest_us, 2 * uint64_t{a.port->config().response_timeout_us});
  ASSERT_TRUE(work({&a, &b}, [&] { return sent.done && received.done; }));
  EXPECT_EQ(sent.status, 0);
  EXPECT_EQ(received.status, 0);
  EXPECT_EQ(std::memcmp(from.at(), to.at(), kBytes), 0);
}

// Each attempt brings some of the data over, so the transfer is never given up, and its waits do
// not grow.
TEST(LargeFault, ALinkThatGoesDownAgainAndAgainDuringALongTransfer) {
  constexpr uint64_t kBytes = 16 << 20;
  constexpr uint32_t kTimes = 24;
  Node a("emu:LargeFaultLink", 5);
  Node b("emu:LargeFaultLink", 6);
  const Area from(kBytes, 0, 0x11);
  const Area to(kBytes, 0, 0x22);
  fill(from.at(), kBytes, 1);
  SendTransfer sent;
  RecvTransfer received;
  ASSERT_TRUE(begin(a, b, from, sent, to, received));
  pmd::Bus& bus = a.port->endpoint().card().bus();
  model::Card& card = *dynamic_cast<pmd::EmuBus&>(bus).card();
  for (uint32_t i = 0; i < kTimes; ++i) {
    const uint32_t attempt = sent.grant.attempt();
    ASSERT_TRUE(work({&a, &b}, [&] { return sent.done || sent.grant.next() > sent.grant.out(); }))
        << i;
    card.set_link(false);
    ASSERT_TRUE(work({&a, &b}, [&] {
      return sent.done || sent.grant.state() == SendGrant::State::kDraining;
    })) << i;
    card.set_link(true);
    ASSERT_TRUE(work({&a, &b}, [&] { return sent.done || sent.grant.attempt() != attempt; })) << i;
  }
  ASSERT_TRUE(work({&a, &b}, [&] { return sent.done && received.done; }));
  EXPECT_EQ(sent.status, 0);
  EXPECT_EQ(received.status, 0);
  EXPECT_EQ(sent.grant.attempt(), kTimes);
  EXPECT_EQ(std::memcmp(from.at(), to.at(), kBytes), 0);
}

}  // namespace
}  // namespace rio::msg::test
