#include "lib/msg/receive_queues.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBounceShift =
    32;  // cookie of an entry: bounce buffer plus 1, above this bit; number of the entry below

[[nodiscard]] uint32_t buffer_of(uint64_t cookie) {
  return static_cast<uint32_t>(cookie >> kBounceShift) - 1;
}

}  // namespace

int ReceiveQueues::create() {
  rules_ = rail_.endpoint.align_rules();
  return bounce_.create(rail_.endpoint, kQueues * kBounceEach);
}

bool ReceiveQueues::open(const Path& path, const QueuePlace& place) {
  Queue& queue = queues_[place.queue];
  if (place.reopen && queue.ring != nullptr) {
    if (rail_.endpoint.close_dedicated(place.queue) == -ETIMEDOUT) {
      return false;
    }
    queue.ring = nullptr;
  }
  return queue.ring != nullptr ||
         rail_.endpoint.open_dedicated(place.queue, path.dest_id, place.mailbox, &queue.ring) == 0;
}

void ReceiveQueues::assign(RecvTransfer& transfer) {
  transfer.held = true;
  queues_[transfer.place.queue].transfer = &transfer;
  used_ |= 1u << transfer.place.queue;
}

void ReceiveQueues::post(RecvTransfer& transfer) {
  Queue& queue = queues_[transfer.place.queue];
  RecvGrant& grant = transfer.grant;
  const uint32_t n = std::min<uint32_t>(grant.may_post(), queue.ring->free_count());
  const pmd::mem::Range range = transfer.range(transfer.rest_bytes);
  if (n == 0 || transfer.broken || post_whole(transfer, range, n) ||
      pmd::mem::plan_receive(range, transfer.cut, rules_, {grant.next(), n}, &plan_) != 0) {
    return;
  }
  pmd::DedicatedEntry entries[kEntriesMax];
  uint32_t count = 0;
  for (; count < n; ++count) {
    const pmd::mem::PlanMessage& m = plan_.messages[count];
    entries[count] = {m.iova, grant.next() + count, m.wire_bytes};
    if (m.placement == pmd::mem::Placement::kInPlace) {
      continue;
    }
    if (queue.bounced.size() == kBounceEach) {
      break;
    }
    const uint32_t buffer = bounce_.get();  // kBounceEach buffers belong to each queue
    queue.bounced.push_back(buffer);
    entries[count].iova = bounce_.iova(buffer);
    entries[count].cookie |= uint64_t{buffer + 1} << kBounceShift;
  }
  const uint32_t posted = queue.ring->post(entries, static_cast<uint16_t>(count));
  for (uint32_t i = posted; i < count; ++i) {
    free_bounced(queue, entries[i].cookie);
  }
  grant.posted(posted);
}

/// Fast path: post entries that need no bounce buffer. @return false: some may need one.
bool ReceiveQueues::post_whole(RecvTransfer& transfer, const pmd::mem::Range& range, uint32_t n) {
  RecvGrant& grant = transfer.grant;
  const uint32_t first = grant.next();
  uint64_t iova = 0;
  if (!pmd::mem::plan_whole(range, transfer.cut, rules_, {first, n}, &iova)) {
    return false;
  }
  pmd::DedicatedEntry entries[kEntriesMax];
  const uint32_t size = rules_.message_max;
  for (uint32_t i = 0; i < n; ++i) {
    entries[i] = {iova + uint64_t{i} * size, first + i, size};
  }
  grant.posted(queues_[transfer.place.queue].ring->post(entries, static_cast<uint16_t>(n)));
  return true;
}

uint32_t ReceiveQueues::ready() const {
  uint32_t ready = 0;
  for (uint32_t left = used_; left != 0; left &= left - 1) {
    const uint32_t bit = left & (~left + 1);
    ready |= queues_[static_cast<uint32_t>(__builtin_ctz(left))].ring->ready() ? bit : 0;
  }
  return ready;
}

RecvTransfer* ReceiveQueues::reap(uint32_t index) {
  Queue& queue = queues_[index];
  pmd::EntryDone done[kEntriesMax];
  const uint32_t n = queue.ring->reap(done, kEntriesMax);
  if (n == 0) {
    return nullptr;
  }
  for (uint32_t i = complete_placed(*queue.transfer, {done, n}); i < n; ++i) {
    complete(queue, done[i]);
  }
  RecvTransfer& transfer = *queue.transfer;
  if (transfer.grant.state() == RecvGrant::State::kDone) {
    used_ &= ~(1u << transfer.place.queue);
    queue.transfer = nullptr;
    transfer.held = false;
    assigner_.release(transfer.path->source, transfer.place);
  } else if (transfer.grant.may_post() >= kWindow / 2 || queue.ring->outstanding() == 0 ||
             transfer.grant.may_post() + transfer.grant.next() ==
                 pmd::mem::cut_messages(transfer.cut)) {
    post(transfer);
  }
  return &transfer;
}

/// Fast path: count successful completions of entries in place. @return how many; complete()
/// handles the next one.
uint32_t ReceiveQueues::complete_placed(RecvTransfer& transfer,
                                        std::span<const pmd::EntryDone> done) {
  uint32_t n = 0;
  uint64_t bytes = 0;
  while (n < done.size() && done[n].status == pmd::Status::kOk &&
         done[n].cookie >> kBounceShift == 0 && !transfer.broken) {
    bytes += done[n].bytes;  // the whole entry, since nothing is padded there
    ++n;
  }
  works_.stats.placed += bytes;
  transfer.grant.completed(n);
  return n;
}

void ReceiveQueues::complete(Queue& queue, const pmd::EntryDone& done) {
  RecvTransfer& transfer = *queue.transfer;
  const bool bounced = done.cookie >> kBounceShift != 0;
  const bool good = done.status == pmd::Status::kOk && !transfer.broken;
  const pmd::mem::CutMessage part =
      pmd::mem::cut_message(transfer.cut, rules_, static_cast<uint32_t>(done.cookie));
  if (bounced && good) {
    std::memcpy(transfer.rest + transfer.arrived_bytes + part.offset_bytes,
                bounce_.va(buffer_of(done.cookie)), part.len_bytes);
  }
  free_bounced(queue, done.cookie);
  if (!good) {
    transfer.broken = true;  // the sender knows, and will send CLOSED
    return;
  }
  (bounced ? works_.stats.copied : works_.stats.placed) += part.len_bytes;
  transfer.grant.completed(1);
}

/// An entry is over: free its bounce buffer, if any.
void ReceiveQueues::free_bounced(Queue& queue, uint64_t cookie) {
  if (cookie >> kBounceShift != 0) {
    std::erase(queue.bounced, buffer_of(cookie));
    bounce_.put(buffer_of(cookie));
  }
}

void ReceiveQueues::leave(RecvTransfer& transfer, bool is_doubtful) {
  QueueSource& source = transfer.path->source;
  const QueuePlace place = transfer.place;
  if (!transfer.held) {
    end_quarantine(transfer.quarantined, source, place);
    return;
  }
  transfer.held = false;
  queues_[place.queue].transfer = nullptr;
  used_ &= ~(1u << place.queue);
  if (transfer.quarantined) {
    assigner_.quarantine(source, place);
  } else if (is_doubtful) {
    assigner_.close_and_rest(source, place,
                             base::now_ns() + 2 * works_.config.response_timeout_ns());
    rest(*transfer.path);
  } else {
    assigner_.close(source, place);
  }
  stop(place.queue);
  transfer.stuck |= static_cast<uint8_t>(to_stop_ & (1u << place.queue));
}

void ReceiveQueues::stop(uint32_t index) {
  Queue& queue = queues_[index];
  // A card that is gone or was reset has stopped the queue, which another program may own by now.
  const bool there = queue.ring != nullptr && rail_.health.error() == 0;
  const int rc = there ? rail_.endpoint.close_dedicated(index) : 0;
  if (rc == -ETIMEDOUT) {
    to_stop_ |= 1u << index;  // the card may still write to its memory
    return;
  }
  to_stop_ &= ~(1u << index);
  for (const uint32_t buffer : queue.bounced) {
    bounce_.put(buffer);
  }
  queue.bounced.clear();
  queue.ring = nullptr;
  assigner_.stopped(index);
}

void ReceiveQueues::stop_pending() {
  for (uint32_t left = to_stop_; left != 0; left &= left - 1) {
    stop(static_cast<uint32_t>(__builtin_ctz(left)));
  }
}

void ReceiveQueues::quarantine(RecvTransfer& transfer) {
  transfer.quarantined = true;
  ++quarantined_;
  leave(transfer);
}

void ReceiveQueues::quarantine(Request& request) {
  request.quarantined = true;
  ++quarantined_;
  assigner_.quarantine(request.path->source, request.place);
  stop(request.place.queue);
}

void ReceiveQueues::end_quarantine(bool& quarantined, QueueSource& source,
                                   const QueuePlace& place) {
  if (quarantined) {
    forget_quarantine(quarantined);
    assigner_.closed(source, place.mailbox);
  }
}

void ReceiveQueues::end_session(Path& path) {
  const uint32_t dead =
      assigner_.died(path.source, base::now_ns() + 4 * works_.config.response_timeout_ns());
  for (uint32_t i = 0; i < kQueues; ++i) {
    if ((dead & (1u << i)) != 0) {
      RecvTransfer* const transfer = std::exchange(queues_[i].transfer, nullptr);
      used_ &= ~(1u << i);
      stop(i);
      if (transfer != nullptr) {
        transfer->stuck |= static_cast<uint8_t>(to_stop_ & (1u << i));
      }
    }
  }
  if (path.source.resting()) {
    rest(path);
  }
}

/// Pairs of a path's source rest: end_rests() looks at them.
void ReceiveQueues::rest(Path& path) {
  if (std::find(resting_.begin(), resting_.end(), &path) == resting_.end()) {
    resting_.push_back(&path);
  }
}

void ReceiveQueues::end_rests() {
  if (!resting_.empty()) {
    const uint64_t now = base::now_ns();
    std::erase_if(resting_, [&](Path* path) { return assigner_.rested(path->source, now); });
  }
}

}  // namespace rio::msg
