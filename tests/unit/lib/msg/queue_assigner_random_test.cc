// QueueAssigner beside a simple reference, with any calls that the rules allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "lib/msg/queue_assigner.hpp"
#include "tests/support/seed.hpp"

namespace rio::msg {
namespace {

using Pair = QueueSource::Pair;

/// A reference with these rules in plain containers, which it searches from the start each time.
class Reference {
 public:
  struct Source {
    std::deque<QueueWaiter*> waiting;
    Pair pairs[3] = {};
    uint64_t turn = 0;  // when it joined the ring; 0: it is not in the ring
  };

  explicit Reference(size_t count) : sources(count) {}

  bool ready(const Source& source) const {
    return !source.waiting.empty() && std::count(source.pairs, source.pairs + 3, Pair::kFree) != 0;
  }
  void look() {
    for (Source& source : sources) {
      if (!ready(source)) {
        source.turn = 0;
      } else if (source.turn == 0) {
        source.turn = ++clock;
      }
    }
  }
  /// The source whose turn it is.
  std::optional<size_t> next() const {
    std::optional<size_t> best;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].turn != 0 && (!best || sources[i].turn < sources[*best].turn)) {
        best = i;
      }
    }
    return free != 0 ? best : std::nullopt;
  }

  std::vector<Source> sources;
  uint64_t clock = 0;
  unsigned free = 8;
};

struct Held {
  size_t source;
  QueuePlace place;
};

/// One run: any calls that the rules allow, in random order.
class RandomRun {
 public:
  explicit RandomRun(uint32_t seed) : random_(seed), reference_(kSources) {}

  void step() {
    switch (pick(8)) {
      case 0:
      case 1: {
        const size_t i = pick(kSources);
        waiters_.emplace_back();
        assigner_.wait(sources_[i], waiters_.back());
        reference_.sources[i].waiting.push_back(&waiters_.back());
        break;
      }
      case 2:
        assign();
        break;
      case 3:
        end();
        break;
      case 4:
        offer();
        break;
      case 5:
        stop_one();
        break;
      case 6:
        die();
        break;
      case 7:
        close_one();
        break;
    }
    reference_.look();
    check();
  }

 private:
  static constexpr size_t kSources = 5;

  size_t pick(size_t below) { return random_() % below; }
  Pair& pair(const Held& held) {
    return reference_.sources[held.source].pairs[held.place.mailbox - 1];
  }
  template <typename T>
  T take(std::vector<T>* from) {
    const size_t i = pick(from->size());
    const T taken = (*from)[i];
    from->erase(from->begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  }
  bool stopping(size_t source, unsigned mailbox) const {
    return std::any_of(stopping_.begin(), stopping_.end(), [&](const Held& held) {
      return held.source == source && held.place.mailbox == mailbox;
    });
  }

  void assign() {
    const std::optional<size_t> next = reference_.next();
    QueuePlace place;
    QueueWaiter* const waiter = assigner_.assign(&place);
    ASSERT_EQ(waiter != nullptr, next.has_value());
    if (!next) {
      return;
    }
    Reference::Source& source = reference_.sources[*next];
    ASSERT_EQ(waiter, source.waiting.front());
    source.waiting.pop_front();
    source.turn = 0;
    got({*next, place}, Pair::kTransfer);
  }

  void offer() {
    const size_t i = pick(kSources);
    const Reference::Source& source = reference_.sources[i];
    size_t waiting = 0;
    for (const Reference::Source& each : reference_.sources) {
      waiting += each.waiting.size();
    }
    const bool may = waiting == 0 && reference_.free > 2 &&
                     std::count(source.pairs, source.pairs + 3, Pair::kOffer) < 2 &&
                     std::count(source.pairs, source.pairs + 3, Pair::kFree) != 0;
    QueuePlace place;
    ASSERT_EQ(assigner_.offer(sources_[i], &place), may);
    if (may) {
      got({i, place}, Pair::kOffer);
    }
  }

  void got(const Held& held, Pair as) {
    ASSERT_EQ(pair(held), Pair::kFree);
    ASSERT_FALSE(stopping(held.source, held.place.mailbox));
    for (const Held& other : held_) {
      ASSERT_NE(other.place.queue, held.place.queue);
    }
    pair(held) = as;
    --reference_.free;
    held_.push_back(held);
    opened_[held.place.queue] = held;
  }

  void end() {
    if (held_.empty()) {
      return;
    }
    const Held held = take(&held_);
    QueueSource& source = sources_[held.source];
    if (pair(held) == Pair::kOffer && pick(2) == 0) {
      assigner_.accepted(source, held.place);
      pair(held) = Pair::kTransfer;
      held_.push_back(held);
      return;
    }
    switch (pick(3)) {
      case 0:
        assigner_.release(source, held.place);
        pair(held) = Pair::kFree;
        ++reference_.free;
        return;
      case 1:
        assigner_.quarantine(source, held.place);
        pair(held) = Pair::kQuarantine;
        break;
      case 2:
        assigner_.close(source, held.place);
        pair(held) = Pair::kClosed;
        break;
    }
    stopping_.push_back(held);
  }

  void stop_one() {
    if (stopping_.empty()) {
      return;
    }
    const Held held = take(&stopping_);
    assigner_.stopped(held.place.queue);
    ++reference_.free;
    if (pair(held) == Pair::kClosed) {
      pair(held) = Pair::kFree;
    }
  }

  void close_one() {
    const Held held{pick(kSources), {0, static_cast<uint8_t>(pick(3) + 1)}};
    assigner_.closed(sources_[held.source], held.place.mailbox);
    if (pair(held) == Pair::kQuarantine) {
      pair(held) = stopping(held.source, held.place.mailbox) ? Pair::kClosed : Pair::kFree;
    }
  }

  void die() {
    const size_t i = pick(kSources);
    if (pick(8) != 0) {
      rest(i);
      return;
    }
    const uint32_t stop = assigner_.died(sources_[i], now_ + pick(50));
    reference_.sources[i].waiting.clear();
    for (size_t at = held_.size(); at-- > 0;) {
      if (held_[at].source == i) {
        ASSERT_NE(stop & 1u << held_[at].place.queue, 0u);
        stopping_.push_back(held_[at]);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    // Queues that are open for it without a transfer must be stopped as well.
    for (uint8_t queue = 0; queue < 8; ++queue) {
      const bool known = std::any_of(stopping_.begin(), stopping_.end(),
                                     [&](const Held& held) { return held.place.queue == queue; });
      if ((stop & 1u << queue) != 0 && !known) {
        --reference_.free;
        ASSERT_EQ(opened_[queue].source, i);
        stopping_.push_back(opened_[queue]);
      }
    }
    for (size_t m = 0; m < 3; ++m) {
      reference_.sources[i].pairs[m] = sources_[i].pairs[m];
      if (stopping(i, static_cast<unsigned>(m + 1))) {
        ASSERT_EQ(sources_[i].pairs[m], Pair::kRest);
      }
    }
  }

  void rest(size_t i) {
    now_ += pick(20);
    const bool none = assigner_.rested(sources_[i], now_);
    for (uint8_t m = 1; m <= 3; ++m) {
      Pair& state = reference_.sources[i].pairs[m - 1];
      if (state == Pair::kRest && now_ >= sources_[i].rest_until_ns && !stopping(i, m)) {
        state = Pair::kFree;
      }
    }
    ASSERT_EQ(none, std::count(reference_.sources[i].pairs, reference_.sources[i].pairs + 3,
                               Pair::kRest) == 0);
  }

  void check() {
    ASSERT_EQ(assigner_.free_queues(), reference_.free);
    unsigned offers = 0;
    for (size_t i = 0; i < kSources; ++i) {
      for (size_t m = 0; m < 3; ++m) {
        ASSERT_EQ(sources_[i].pairs[m], reference_.sources[i].pairs[m]) << i << ' ' << m;
        offers += sources_[i].pairs[m] == Pair::kOffer ? 1 : 0;
      }
    }
    ASSERT_EQ(assigner_.offers(), offers);
    ASSERT_LE(offers, 6u);
  }

  std::mt19937 random_;
  QueueAssigner assigner_;
  QueueSource sources_[kSources];
  Reference reference_;
  std::deque<QueueWaiter> waiters_;
  std::vector<Held> held_;
  std::vector<Held> stopping_;
  Held opened_[8] = {};  // the last source that each queue was open for
  uint64_t now_ = 0;
};

TEST(QueueAssignerRandom, AgreesWithASimpleReference) {
  const uint32_t first = rio::test::first_seed();
  for (uint32_t seed = first; seed != first + 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun run(seed);
    for (int i = 0; i < 2000; ++i) {
      run.step();
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

}  // namespace
}  // namespace rio::msg
