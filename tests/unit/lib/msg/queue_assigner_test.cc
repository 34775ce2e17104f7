#include "lib/msg/queue_assigner.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace rio::msg {
namespace {

using Pair = QueueSource::Pair;

TEST(QueueAssigner, GivesASourceThreeQueuesAndNoFourth) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[4];
  for (QueueWaiter& waiter : waiters) {
    assigner.wait(source, waiter);
  }
  QueuePlace places[3];
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(assigner.assign(&places[i]), &waiters[i]);
    EXPECT_EQ(places[i].mailbox, i + 1);
    EXPECT_FALSE(places[i].open);
    EXPECT_FALSE(places[i].reopen);
  }
  QueuePlace none;
  EXPECT_EQ(assigner.assign(&none), nullptr);
  EXPECT_TRUE(waiters[3].waiting());
  assigner.release(source, places[1]);
  EXPECT_EQ(assigner.assign(&none), &waiters[3]);
  EXPECT_TRUE(none.open);  // still open, for another source
  EXPECT_EQ(none.queue, places[1].queue);
  EXPECT_EQ(none.mailbox, 2);
}

TEST(QueueAssigner, ServesSourcesInTurn) {
  QueueAssigner assigner(3);
  QueueSource sources[3];
  QueueWaiter waiters[3][3];
  for (int i = 0; i < 3; ++i) {
    for (QueueWaiter& waiter : waiters[i]) {
      assigner.wait(sources[i], waiter);
    }
  }
  for (int round = 0; round < 3; ++round) {
    QueuePlace places[3];
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(assigner.assign(&places[i]), &waiters[i][round]);
    }
    QueuePlace none;
    EXPECT_EQ(assigner.assign(&none), nullptr);
    for (int i = 0; i < 3; ++i) {
      assigner.release(sources[i], places[i]);
    }
  }
}

TEST(QueueAssigner, TakesAQueueThatIsOpenForAnotherOnlyIfThereIsNoOther) {
  QueueAssigner assigner(3);
  QueueSource first;
  QueueSource second;
  QueueWaiter waiters[4];
  QueuePlace place;
  assigner.wait(first, waiters[0]);
  ASSERT_NE(assigner.assign(&place), nullptr);
  assigner.release(first, place);
  const unsigned warm = place.queue;
  for (int i = 1; i < 4; ++i) {
    assigner.wait(second, waiters[i]);
    ASSERT_NE(assigner.assign(&place), nullptr);
    EXPECT_EQ(place.reopen, i == 3);
    EXPECT_EQ(place.queue == warm, i == 3);
  }
}

TEST(QueueAssigner, KeepsAPairInQuarantineUntilClosedAndStopped) {
  QueueAssigner assigner(3);
  QueueSource source;
  QueueWaiter waiters[4];
  QueuePlace places[3];
  for (int i = 0; i < 3; ++i) {
    assigner.wait(source, waiters[i]);
    ASSERT_NE(assigner.assign(&places[i]), nullptr);
  }
  assigner.wait(source, waiters[3]);
  assigner.quarantine(source, places[2]);
  QueuePlace place;
  assigner.stopped(places[2].queue);
  EXPECT_EQ(assigner.free_queues(), 1u);
  EXPECT_EQ(assigner.assign(&place), nullptr);  // a queue is free, but no mailbox
  assigner.closed(source, 3);
  assigner.closed(source, 3);  // a second call does nothing
  EXPECT_EQ(assigner.assign(&place), &waiters[3]);
  EXPECT_EQ(place.mailbox, 3);

  assigner.wait(source, waiters[0]);
  assigner.quarantine(source, places[0]);
  assigner.closed(source, 1);
  EXPECT_EQ(assigner.assign(&place), nullptr);  // its ring is still open for the source
  assigner.stopped(places[0].queue);
  EXPECT_EQ(assigner.assign(&place), &waiters[0]);

  assigner.wait(source, waiters[1]);
  assigner.close(source, places[1]);
  EXPECT_EQ(assigner.assign(&place), nullptr);
  assigner.stopped(places[1].queue);
  EXPECT_EQ(assigner.assign(&place), &waiters[1]);
  EXPECT_FALSE(place.open);
}

TEST(QueueAssigner, KeepsTheMailboxesOfAGoneSourceInQuarantine) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[5];
  QueuePlace places[3];
  for (int i = 0; i < 3; ++i) {
    assigner.wait(source, waiters[i]);
    ASSERT_NE(assigner.assign(&places[i]), nullptr);
  }
  assigner.wait(source, waiters[3]);
  assigner.quarantine(source, places[0]);
  assigner.release(source, places[1]);
  EXPECT_EQ(assigner.died(source, 1000), 1u << places[1].queue | 1u << places[2].queue);
  EXPECT_FALSE(waiters[3].waiting());

  assigner.wait(source, waiters[4]);  // the source has restarted
  QueuePlace place;
  EXPECT_EQ(assigner.assign(&place), nullptr);
  for (const QueuePlace& old : places) {
    assigner.stopped(old.queue);
  }
  EXPECT_FALSE(assigner.rested(source, 999));
  EXPECT_EQ(assigner.assign(&place), nullptr);
  assigner.closed(source, 1);  // a late message of the old session, which has no meaning any more
  EXPECT_EQ(assigner.assign(&place), nullptr);
  EXPECT_TRUE(assigner.rested(source, 1000));
  EXPECT_EQ(assigner.assign(&place), &waiters[4]);
}

TEST(QueueAssigner, AQuarantineDoesNotEndBeforeItsRingIsStopped) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiter;
  QueuePlace place;
  assigner.wait(source, waiter);
  ASSERT_NE(assigner.assign(&place), nullptr);
  EXPECT_EQ(assigner.died(source, 5), 1u << place.queue);
  EXPECT_FALSE(assigner.rested(source, 9));
  assigner.stopped(place.queue);
  EXPECT_TRUE(assigner.rested(source, 9));
}

TEST(QueueAssigner, APairWithMessagesInDoubtRestsAlone) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[2];
  QueuePlace places[2];
  for (int i = 0; i < 2; ++i) {
    assigner.wait(source, waiters[i]);
    ASSERT_NE(assigner.assign(&places[i]), nullptr);
  }
  assigner.close_and_rest(source, places[0], 100);
  assigner.stopped(places[0].queue);
  assigner.release(source, places[1]);
  EXPECT_EQ(source.count(Pair::kRest), 1u);
  EXPECT_EQ(source.count(Pair::kFree), 2u);
  EXPECT_FALSE(assigner.rested(source, 99));
  EXPECT_TRUE(assigner.rested(source, 100));
  EXPECT_EQ(source.count(Pair::kFree), 3u);
  EXPECT_EQ(assigner.free_queues(), QueueAssigner::kQueues);
}

TEST(QueueAssigner, ARequestMayGoFirst) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[3];
  assigner.wait(source, waiters[0]);
  assigner.wait(source, waiters[1]);
  assigner.wait_first(source, waiters[2]);
  QueuePlace place;
  EXPECT_EQ(assigner.assign(&place), &waiters[2]);
  EXPECT_EQ(assigner.assign(&place), &waiters[0]);
  EXPECT_EQ(assigner.assign(&place), &waiters[1]);
}

TEST(QueueAssigner, OffersLeaveTwoQueuesAndAMailbox) {
  QueueAssigner assigner;
  QueueSource sources[4];
  QueuePlace place;
  EXPECT_TRUE(assigner.offer(sources[0], &place));
  EXPECT_TRUE(assigner.offer(sources[0], &place));
  EXPECT_FALSE(assigner.offer(sources[0], &place));  // the third mailbox is kept for requests
  for (int i = 1; i < 3; ++i) {
    EXPECT_TRUE(assigner.offer(sources[i], &place));
    EXPECT_TRUE(assigner.offer(sources[i], &place));
  }
  EXPECT_EQ(assigner.free_queues(), 2u);
  EXPECT_FALSE(assigner.offer(sources[3], &place));
  EXPECT_FALSE(assigner.wants_revoke());

  QueueWaiter waiters[3];
  for (QueueWaiter& waiter : waiters) {
    assigner.wait(sources[3], waiter);
  }
  QueuePlace other;
  EXPECT_NE(assigner.assign(&other), nullptr);
  EXPECT_NE(assigner.assign(&other), nullptr);
  EXPECT_EQ(assigner.assign(&other), nullptr);
  EXPECT_TRUE(assigner.wants_revoke());
  assigner.release(sources[2], place);  // the offer was refused or revoked
  EXPECT_EQ(assigner.offers(), 5u);
  EXPECT_EQ(assigner.assign(&other), &waiters[2]);
  EXPECT_TRUE(other.reopen);
}

TEST(QueueAssigner, AnAcceptedOfferCountsAsATransfer) {
  QueueAssigner assigner;
  QueueSource source;
  QueuePlace first;
  QueuePlace second;
  ASSERT_TRUE(assigner.offer(source, &first));
  ASSERT_TRUE(assigner.offer(source, &second));
  assigner.accepted(source, first);
  EXPECT_EQ(assigner.offers(), 1u);
  EXPECT_EQ(assigner.died(source, 0), 1u << first.queue | 1u << second.queue);
  EXPECT_EQ(assigner.offers(), 0u);
}

TEST(QueueAssigner, UnwaitRemovesFromTheMiddle) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[3];
  for (QueueWaiter& waiter : waiters) {
    assigner.wait(source, waiter);
  }
  assigner.unwait(waiters[1]);
  assigner.unwait(waiters[1]);
  QueuePlace place;
  EXPECT_EQ(assigner.assign(&place), &waiters[0]);
  EXPECT_EQ(assigner.assign(&place), &waiters[2]);
  EXPECT_EQ(assigner.assign(&place), nullptr);
}

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

TEST(QueueAssigner, AgreesWithASimpleReference) {
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
