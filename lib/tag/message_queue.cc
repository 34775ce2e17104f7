#include "lib/tag/message_queue.hpp"

#include <bit>
#include <cassert>

namespace rio::tag {

int MessageQueue::create(const HashSeed& seed, uint64_t messages) {
  if (const int rc = by_key_.create(seed, messages); rc != 0) {
    return rc;
  }
  return by_bits_.create(seed, messages);
}

void MessageQueue::append(Message& message) {
  assert(message.place == Place::kNowhere && message.source != kAnySource);
  message.place = Place::kQueued;
  waiting_.append(message);
  ++count_;
  if (by_key_used_) {
    by_key_.add(message);
  }
  if (by_bits_used_) {
    by_bits_.add(message);
  }
}

Message* MessageQueue::walk(const Pattern& pattern, uint64_t steps) const {
  Message* message = waiting_.first();
  for (; steps != 0 && message != nullptr; --steps, message = List::next(*message)) {
    if (pattern.matches(message->source, message->bits)) {
      return message;
    }
  }
  return nullptr;
}

template <class Table>
Message* MessageQueue::find_whole(const Pattern& pattern, Table* table, bool* used) {
  if (!*used) {
    Message* message = walk(pattern, kShortWalk);
    if (message != nullptr || count_ <= kShortWalk) {
      return message;
    }
    // Without memory the chains become longer; add() counts that.
    (void)table->reserve(count_);
    table->ignore(pattern.ignore);
    waiting_.for_each([&](Message& each) { table->add(each); });
    *used = true;
  }
  return table->ignored() == pattern.ignore ? *table->find(pattern.source, pattern.bits)
                                            : walk(pattern, count_);
}

Message* MessageQueue::find(const Pattern& pattern) {
  if (std::popcount(pattern.ignore) > kIgnoredMax) {
    return walk(pattern, count_);
  }
  return pattern.source == kAnySource ? find_whole(pattern, &by_bits_, &by_bits_used_)
                                      : find_whole(pattern, &by_key_, &by_key_used_);
}

void MessageQueue::remove(Message& message) {
  waiting_.remove(message);
  if (by_key_used_) {
    by_key_.remove(message);
  }
  if (by_bits_used_) {
    by_bits_.remove(message);
  }
  message.place = Place::kNowhere;
  if (--count_ == 0) {
    by_key_used_ = by_bits_used_ = false;
  }
}

Message* MessageQueue::take(const Pattern& pattern) {
  Message* message = find(pattern);
  if (message != nullptr) {
    remove(*message);
  }
  return message;
}

Message* MessageQueue::claim(const Pattern& pattern) {
  Message* message = take(pattern);
  if (message != nullptr) {
    message->place = Place::kClaimed;
    claimed_.append(*message);
  }
  return message;
}

int MessageQueue::release(Message& message) {
  if (message.place != Place::kClaimed) {
    return -ENOENT;
  }
  claimed_.remove(message);
  message.place = Place::kNowhere;
  return 0;
}

int MessageQueue::discard(Message& message) {
  if (message.place == Place::kQueued) {
    remove(message);
    return 0;
  }
  return release(message);
}

}  // namespace rio::tag
