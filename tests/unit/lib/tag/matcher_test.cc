// The whole matching engine: single steps, and random steps against lists that are searched.
#include "lib/tag/matcher.hpp"
#include "tests/support/env_number.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <random>
#include <vector>

namespace rio::tag {
namespace {

constexpr HashSeed kSeed{.for_bits = 0x0123456789ABCDEF,
                         .for_source = 0xFEDCBA9876543210,
                         .for_both = 0x9E3779B97F4A7C15};

TEST(Matcher, AMessageWaitsForItsReceive) {
  Matcher matcher;
  ASSERT_EQ(matcher.create(kSeed), 0);
  Message message;
  message.source = 1;
  message.bits = 5;
  message.length_bytes = 100;
  EXPECT_EQ(matcher.arrive(1, 5), nullptr);
  matcher.keep(message);
  EXPECT_EQ(matcher.probe({.bits = 5, .source = 1}), &message);
  Receive other;
  other.bits = 6;
  EXPECT_EQ(matcher.post(other), nullptr);
  Receive receive;
  receive.bits = 5;
  receive.capacity_bytes = 10;  // the caller handles truncation
  EXPECT_EQ(matcher.post(receive), &message);
  EXPECT_EQ(receive.place, Place::kNowhere);
  EXPECT_EQ(matcher.cancel(receive), -ENOENT);
  EXPECT_EQ(matcher.probe({.bits = 5, .source = 1}), nullptr);
  EXPECT_EQ(matcher.cancel(other), 0);
}

TEST(Matcher, AReceiveWaitsForItsMessage) {
  Matcher matcher;
  ASSERT_EQ(matcher.create(kSeed), 0);
  Receive receive;
  receive.source = 1;
  receive.bits = 5;
  EXPECT_EQ(matcher.post(receive), nullptr);
  EXPECT_EQ(matcher.arrive(2, 5), nullptr);
  EXPECT_EQ(matcher.arrive(1, 5), &receive);
  EXPECT_EQ(matcher.arrive(1, 5), nullptr);
}

TEST(Matcher, TooManyAreRefused) {
  Matcher matcher;
  EXPECT_EQ(matcher.create(kSeed, {.receives = (uint64_t{1} << 32) + 1}), -EINVAL);
  EXPECT_EQ(matcher.create(kSeed, {.messages = (uint64_t{1} << 32) + 1}), -EINVAL);
  ASSERT_EQ(matcher.create(kSeed), 0);
}

/// MPI's matching rules, literally: ordered lists that are searched from the front.
struct Reference {
  std::list<Receive*> posted;
  std::list<Message*> waiting;
  std::list<Message*> claimed;

  static bool fits(const Pattern& pattern, uint32_t source, uint64_t bits) {
    for (int bit = 0; bit < 64; ++bit) {
      const uint64_t one = uint64_t{1} << bit;
      if ((pattern.ignore & one) == 0 && (pattern.bits & one) != (bits & one)) {
        return false;
      }
    }
    return pattern.source == 0xFFFFFFFF || pattern.source == source;
  }
  Message* find(const Pattern& pattern) {
    for (Message* message : waiting) {
      if (fits(pattern, message->source, message->bits)) {
        return message;
      }
    }
    return nullptr;
  }
  Receive* arrive(uint32_t source, uint64_t bits) {
    for (Receive* receive : posted) {
      if (fits(*receive, source, bits)) {
        posted.remove(receive);
        return receive;
      }
    }
    return nullptr;
  }
};

/// Draws random steps, and does each in the engine and in the reference.
class Walk {
 public:
  explicit Walk(uint32_t seed) : random_(seed) {
    keys_ = 1 + below(4) * below(20);
    peers_ = 1 + below(4);
    wild_percent_ = below(3) * 30;
    const HashSeed hash{.for_bits = random_(), .for_source = random_(), .for_both = random_() | 1};
    const uint64_t first = below(2) == 0 ? 0 - uint64_t{below(300)} : 0;
    EXPECT_EQ(matcher_.create(hash, {.receives = 1, .messages = 1, .first_number = first}), 0);
  }

  void step() {
    // The share of receives among the steps changes, so that both queues fill up and empty.
    if (below(200) == 0) {
      lean_ = below(101);
    }
    switch (below(16)) {
      default:
        return below(100) < lean_ ? post() : arrive();
      case 9:
        return below(100) < lean_ ? post() : arrive_run();
      case 10:
        return probe();
      case 11:
        return claim();
      case 12:
        return release();
      case 13:
      case 14:
        return cancel();
      case 15:
        return below(20) == 0 ? peer_gone() : discard();
    }
  }

  void check_counts() {
    ASSERT_EQ(matcher_.receives().count(), reference_.posted.size());
    const auto wild = [&](const Receive* each) {
      return each->place == Place::kMasked || each->source == kAnySource;
    };
    const auto unusual = [&](const Receive* each) {
      return each->place == Place::kTable && each->ignore != matcher_.receives().usual();
    };
    ASSERT_EQ(matcher_.receives().wild(),
              std::count_if(reference_.posted.begin(), reference_.posted.end(), wild));
    ASSERT_EQ(std::count_if(reference_.posted.begin(), reference_.posted.end(), unusual), 0);
    ASSERT_EQ(matcher_.messages().count(), reference_.waiting.size());
    size_t claimed = 0;
    matcher_.messages().claimed().for_each([&](const Message&) { ++claimed; });
    ASSERT_EQ(claimed, reference_.claimed.size());
    most_posted_ = std::max(most_posted_, reference_.posted.size());
    most_waiting_ = std::max(most_waiting_, reference_.waiting.size());
  }
  [[nodiscard]] size_t most_posted() const { return most_posted_; }
  [[nodiscard]] size_t most_waiting() const { return most_waiting_; }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint64_t bits() { return uint64_t{below(keys_)} * 0x0100000001u; }

  Pattern pattern() {
    Pattern out{.bits = bits(), .ignore = 0, .source = below(peers_)};
    if (below(100) < wild_percent_) {
      constexpr uint64_t kMasks[] = {0, 1, 0xFFFFFFFF, ~0ull, 0x0300000000};
      out.ignore = kMasks[below(5)];
      out.source = below(2) == 0 ? kAnySource : out.source;
    }
    return out;
  }

  void post() {
    receives_.push_back(std::make_unique<Receive>());
    Receive& receive = *receives_.back();
    static_cast<Pattern&>(receive) = pattern();
    Message* want = reference_.find(receive);
    ASSERT_EQ(matcher_.post(receive), want);
    if (want != nullptr) {
      reference_.waiting.remove(want);
    } else {
      reference_.posted.push_back(&receive);
    }
  }

  void arrive() {
    const uint32_t source = below(peers_);
    const uint64_t with = bits();
    Receive* want = reference_.arrive(source, with);
    ASSERT_EQ(matcher_.arrive(source, with), want);
    if (want == nullptr) {
      keep(source, with);
    }
  }

  // Delivers a run of messages of one source up to the first that no receive matches. Most have the
  // same bits.
  void arrive_run() {
    const uint32_t source = below(peers_);
    uint64_t with = bits();
    Receive* want = nullptr;
    {
      ReceiveQueue::Run run = matcher_.arrive_run(source);
      uint32_t left = 1 + below(20);
      do {
        with = below(4) == 0 ? bits() : with;
        want = reference_.arrive(source, with);
        ASSERT_EQ(run.take(with), want);
      } while (want != nullptr && --left != 0);
    }
    if (want == nullptr) {
      keep(source, with);
    }
  }

  void keep(uint32_t source, uint64_t with) {
    messages_.push_back(std::make_unique<Message>());
    Message& message = *messages_.back();
    message.source = source;
    message.bits = with;
    matcher_.keep(message);
    reference_.waiting.push_back(&message);
  }

  void probe() {
    const Pattern asked = pattern();
    ASSERT_EQ(matcher_.probe(asked), reference_.find(asked));
  }

  void claim() {
    const Pattern asked = pattern();
    Message* want = reference_.find(asked);
    ASSERT_EQ(matcher_.claim(asked), want);
    if (want != nullptr) {
      reference_.waiting.remove(want);
      reference_.claimed.push_back(want);
    }
  }

  template <class T>
  static bool holds(const std::list<T*>& list, const T* one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  }

  // Releases any handle that ever existed, in whatever state it is.
  void release() {
    if (!messages_.empty()) {
      Message* message = pick(messages_);
      const bool is_claimed = holds(reference_.claimed, message);
      ASSERT_EQ(matcher_.release(*message), is_claimed ? 0 : -ENOENT);
      reference_.claimed.remove(message);
    }
  }

  void discard() {
    if (!messages_.empty()) {
      Message* message = pick(messages_);
      const bool here = holds(reference_.claimed, message) || holds(reference_.waiting, message);
      ASSERT_EQ(matcher_.discard(*message), here ? 0 : -ENOENT);
      reference_.claimed.remove(message);
      reference_.waiting.remove(message);
    }
  }

  void cancel() {
    if (!receives_.empty()) {
      Receive* receive = pick(receives_);
      ASSERT_EQ(matcher_.cancel(*receive), holds(reference_.posted, receive) ? 0 : -ENOENT);
      reference_.posted.remove(receive);
    }
  }

  // Draws mostly from the latest entries, since more of these are still waiting.
  template <class T>
  T* pick(const std::vector<std::unique_ptr<T>>& all) {
    const auto size = static_cast<uint32_t>(all.size());
    return all[size - 1 - below(std::min(size, below(2) == 0 ? 50u : size))].get();
  }

  void peer_gone() {
    const uint32_t peer = below(peers_);
    const auto gone =
        matcher_.receives().cancel_if([&](const Receive& each) { return each.source == peer; });
    size_t count = 0;
    gone.for_each([&](Receive& each) {
      ASSERT_TRUE(holds(reference_.posted, &each));
      reference_.posted.remove(&each);
      ++count;
    });
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
    for (const Receive* each : reference_.posted) {
      ASSERT_NE(each->source, peer);
    }
    matcher_.messages().waiting().for_each([&](Message& each) {
      if (each.source == peer) {
        ASSERT_EQ(matcher_.discard(each), 0);
        ASSERT_TRUE(holds(reference_.waiting, &each));
        reference_.waiting.remove(&each);
      }
    });
  }

  std::mt19937_64 random_;
  uint32_t keys_ = 1;
  uint32_t peers_ = 1;
  uint32_t wild_percent_ = 0;
  uint32_t lean_ = 50;  // percentage of receives
  Matcher matcher_;
  Reference reference_;
  std::vector<std::unique_ptr<Receive>> receives_;
  std::vector<std::unique_ptr<Message>> messages_;
  size_t most_posted_ = 0;
  size_t most_waiting_ = 0;
};

uint32_t seeds() {
  return static_cast<uint32_t>(test::env_number("RIO_TAG_SEEDS", 300));
}

// A failure prints its seed. RIO_TAG_SEEDS: number of seeds.
TEST(Matcher, AgreesWithSearchedLists) {
  size_t most_posted = 0;
  size_t most_waiting = 0;
  for (uint32_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    Walk walk(seed);
    for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
      walk.step();
      walk.check_counts();
    }
    most_posted = std::max(most_posted, walk.most_posted());
    most_waiting = std::max(most_waiting, walk.most_waiting());
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(most_posted, 128u);  // the tables grew
  EXPECT_GT(most_waiting, 128u);
}

}  // namespace
}  // namespace rio::tag
