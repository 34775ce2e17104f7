#include "lib/msg/queue_assigner.hpp"

#include <algorithm>
#include <cassert>

namespace rio::msg {

using Pair = QueueSource::Pair;

unsigned QueueSource::count(Pair state) const {
  return static_cast<unsigned>(std::count(pairs.begin(), pairs.end(), state));
}

QueueAssigner::QueueAssigner(unsigned queues) : count_(queues), free_(queues) {
  assert(queues > kQueuesKept && queues <= kQueues);
}

/// Put a source into the ring, or take it out, according to its state.
void QueueAssigner::look(QueueSource& source) {
  const bool ready = !source.waiting.is_empty() && source.count(Pair::kFree) != 0;
  if (ready == source.in_ring) {
    return;
  }
  source.in_ring = ready;
  if (ready) {
    ring_.append(source);
  } else {
    ring_.remove(source);
  }
}

void QueueAssigner::wait(QueueSource& source, QueueWaiter& waiter) {
  assert(!waiter.waiting());
  waiter.source = &source;
  source.waiting.append(waiter);
  ++waiting_;
  look(source);
}

void QueueAssigner::wait_first(QueueSource& source, QueueWaiter& waiter) {
  assert(!waiter.waiting());
  waiter.source = &source;
  source.waiting.prepend(waiter);
  ++waiting_;
  look(source);
}

void QueueAssigner::unwait(QueueWaiter& waiter) {
  if (!waiter.waiting()) {
    return;
  }
  QueueSource& source = *waiter.source;
  source.waiting.remove(waiter);
  waiter.source = nullptr;
  --waiting_;
  look(source);
}

/// Take a free queue and a free mailbox of the source; both exist. Best is a queue that is open for
/// such a mailbox, then a closed one.
QueuePlace QueueAssigner::take(QueueSource& source, Pair as) {
  unsigned best = kQueues;
  unsigned best_rank = 0;
  for (unsigned i = 0; i < count_; ++i) {
    const Queue& queue = queues_[i];
    if (queue.state != Queue::State::kFree) {
      continue;
    }
    const bool fits = queue.source == &source && source.pairs[queue.mailbox - 1] == Pair::kFree;
    const unsigned rank = fits ? 3 : (queue.source == nullptr ? 2 : 1);
    if (rank > best_rank) {
      best_rank = rank;
      best = i;
    }
  }
  assert(best < kQueues);
  Queue& queue = queues_[best];
  QueuePlace place;
  place.queue = static_cast<uint8_t>(best);
  place.open = best_rank == 3;
  place.reopen = best_rank == 1;
  if (!place.open) {
    const auto* const pair = std::find(source.pairs.begin(), source.pairs.end(), Pair::kFree);
    assert(pair != source.pairs.end());
    queue.mailbox = static_cast<uint8_t>(pair - source.pairs.begin() + 1);
    queue.source = &source;
  }
  place.mailbox = queue.mailbox;
  queue.state = Queue::State::kUsed;
  source.pairs[place.mailbox - 1] = as;
  --free_;
  return place;
}

QueueWaiter* QueueAssigner::assign(QueuePlace* out) {
  QueueSource* const source = ring_.first();
  if (source == nullptr || free_ == 0) {
    return nullptr;
  }
  ring_.remove(*source);  // look() puts it back at the end if more of it waits
  source->in_ring = false;
  QueueWaiter* const waiter = source->waiting.first();
  unwait(*waiter);
  *out = take(*source, Pair::kTransfer);
  look(*source);
  return waiter;
}

bool QueueAssigner::offer(QueueSource& source, QueuePlace* out) {
  // free_ excludes queues that are being stopped
  if (waiting_ != 0 || free_ <= kQueuesKept || source.count(Pair::kOffer) >= kOffersOfSource ||
      source.count(Pair::kFree) == 0) {
    return false;
  }
  *out = take(source, Pair::kOffer);
  ++offers_;
  return true;
}

void QueueAssigner::accepted(QueueSource& source, const QueuePlace& place) {
  assert(source.pairs[place.mailbox - 1] == Pair::kOffer);
  source.pairs[place.mailbox - 1] = Pair::kTransfer;
  --offers_;
}

/// Change the pair of a place. The caller handles the queue.
void QueueAssigner::leave(QueueSource& source, const QueuePlace& place, Pair to) {
  Pair& pair = source.pairs[place.mailbox - 1];
  assert(pair == Pair::kTransfer || pair == Pair::kOffer);
  assert(queues_[place.queue].state == Queue::State::kUsed &&
         queues_[place.queue].source == &source);
  if (pair == Pair::kOffer) {
    --offers_;
  }
  pair = to;
}

void QueueAssigner::release(QueueSource& source, const QueuePlace& place) {
  leave(source, place, Pair::kFree);
  queues_[place.queue].state = Queue::State::kFree;
  ++free_;
  look(source);
}

/// Whether a queue that is open for this pair is being stopped.
bool QueueAssigner::stopping(const QueueSource& source, unsigned mailbox) const {
  return std::any_of(queues_.begin(), queues_.end(), [&](const Queue& queue) {
    return queue.state == Queue::State::kStopping && queue.source == &source &&
           queue.mailbox == mailbox;
  });
}

void QueueAssigner::quarantine(QueueSource& source, const QueuePlace& place) {
  leave(source, place, Pair::kQuarantine);
  queues_[place.queue].state = Queue::State::kStopping;
}

void QueueAssigner::close(QueueSource& source, const QueuePlace& place) {
  leave(source, place, Pair::kClosed);
  queues_[place.queue].state = Queue::State::kStopping;
}

void QueueAssigner::close_and_rest(QueueSource& source, const QueuePlace& place,
                                   uint64_t rest_until_ns) {
  leave(source, place, Pair::kRest);
  queues_[place.queue].state = Queue::State::kStopping;
  source.rest_until_ns = std::max(source.rest_until_ns, rest_until_ns);
}

void QueueAssigner::stopped(unsigned queue) {
  assert(queue < count_ && queues_[queue].state == Queue::State::kStopping);
  QueueSource& source = *queues_[queue].source;
  Pair& pair = source.pairs[queues_[queue].mailbox - 1];
  queues_[queue] = Queue{};
  ++free_;
  if (pair == Pair::kClosed) {
    pair = Pair::kFree;
    look(source);
  }
}

void QueueAssigner::closed(QueueSource& source, unsigned mailbox) {
  assert(mailbox >= 1 && mailbox <= QueueSource::kMailboxes);
  if (source.pairs[mailbox - 1] == Pair::kQuarantine) {
    source.pairs[mailbox - 1] = stopping(source, mailbox) ? Pair::kClosed : Pair::kFree;
    look(source);
  }
}

uint32_t QueueAssigner::died(QueueSource& source, uint64_t rest_until_ns) {
  while (!source.waiting.is_empty()) {
    unwait(*source.waiting.first());
  }
  uint32_t stop = 0;
  for (unsigned i = 0; i < count_; ++i) {
    Queue& queue = queues_[i];
    if (queue.source != &source) {
      continue;
    }
    Pair& pair = source.pairs[queue.mailbox - 1];
    if (pair == Pair::kOffer) {
      --offers_;
    }
    pair = Pair::kRest;
    if (queue.state != Queue::State::kStopping) {
      free_ -= queue.state == Queue::State::kFree ? 1 : 0;  // open, but without a transfer
      queue.state = Queue::State::kStopping;
      stop |= 1u << i;
    }
  }
  for (Pair& pair : source.pairs) {
    pair = pair == Pair::kFree ? Pair::kFree : Pair::kRest;
  }
  source.rest_until_ns = std::max(source.rest_until_ns, rest_until_ns);
  look(source);
  return stop;
}

bool QueueAssigner::rested(QueueSource& source, uint64_t now_ns) {
  for (unsigned i = 0; i < QueueSource::kMailboxes; ++i) {
    if (source.pairs[i] == Pair::kRest && now_ns >= source.rest_until_ns &&
        !stopping(source, i + 1)) {
      source.pairs[i] = Pair::kFree;
    }
  }
  look(source);
  return !source.resting();
}

}  // namespace rio::msg
