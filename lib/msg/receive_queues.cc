#include "lib/msg/receive_queues.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/msg/clock.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBounceShift =
    32;  // cookie of an entry: bounce buffer plus 1, above this bit; number of the entry below

}  // namespace

int ReceiveQueues::create() {
  rules_ = works_.endpoint.align_rules();
  return bounce_.create(works_.endpoint, kQueues * kBounceEach);
}

bool ReceiveQueues::open(const Link& link, const QueuePlace& place) {
  Queue& queue = queues_[place.queue];
  if (place.reopen && queue.ring != nullptr) {
    if (works_.endpoint.close_dedicated(place.queue) == -ETIMEDOUT) {
      return false;
    }
    queue.ring = nullptr;
  }
  return queue.ring != nullptr || works_.endpoint.open_dedicated(place.queue, link.dest_id(),
                                                                 place.mailbox, &queue.ring) == 0;
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
  const pmd::mem::Range range = range_of(transfer);
  if (n == 0 || transfer.broken || post_whole(transfer, range, n) ||
      pmd::mem::plan_receive(range, transfer.cut, rules_, {grant.next(), n}, &plan_) != 0) {
    return;
  }
  pmd::DedicatedEntry entries[kWindow];
  uint32_t buffers[kWindow];
  uint32_t count = 0;
  for (; count < n; ++count) {
    const pmd::mem::PlanMessage& m = plan_.messages[count];
    entries[count] = {m.iova, grant.next() + count, m.wire_bytes};
    buffers[count] = Bounce::kNone;
    if (m.placement == pmd::mem::Placement::kInPlace) {
      continue;
    }
    if (queue.bounced.size() == kBounceEach) {
      break;
    }
    buffers[count] = bounce_.get();  // never empty: there is a buffer for each entry of all queues
    queue.bounced.push_back(buffers[count]);
    entries[count].iova = bounce_.iova(buffers[count]);
    entries[count].cookie |= uint64_t{buffers[count] + 1} << kBounceShift;
  }
  const uint32_t posted = queue.ring->post(entries, static_cast<uint16_t>(count));
  for (uint32_t i = posted; i < count; ++i) {
    if (buffers[i] != Bounce::kNone) {
      std::erase(queue.bounced, buffers[i]);
      bounce_.put(buffers[i]);
    }
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
  pmd::DedicatedEntry entries[kWindow];
  const uint32_t size = rules_.message_max;
  for (uint32_t i = 0; i < n; ++i) {
    entries[i] = {iova + uint64_t{i} * size, first + i, size};
  }
  grant.posted(queues_[transfer.place.queue].ring->post(entries, static_cast<uint16_t>(n)));
  return true;
}

RecvTransfer* ReceiveQueues::reap(uint32_t index) {
  Queue& queue = queues_[index];
  pmd::EntryDone done[kWindow];
  const uint32_t n = queue.ring->reap(done, kWindow);
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
    assigner_.release(transfer.link->large.source, transfer.place);
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
  const auto bounced = static_cast<uint32_t>(done.cookie >> kBounceShift);
  const bool good = done.status == pmd::Status::kOk && !transfer.broken;
  const pmd::mem::CutMessage part =
      pmd::mem::cut_message(transfer.cut, rules_, static_cast<uint32_t>(done.cookie));
  if (bounced != 0) {
    const uint32_t buffer = bounced - 1;
    if (good) {
      std::memcpy(transfer.rest + transfer.arrived_bytes + part.offset_bytes, bounce_.va(buffer),
                  part.len_bytes);
    }
    std::erase(queue.bounced, buffer);
    bounce_.put(buffer);
  }
  if (!good) {
    transfer.broken = true;  // the sender knows, and will send CLOSED
    return;
  }
  (bounced != 0 ? works_.stats.copied : works_.stats.placed) += part.len_bytes;
  transfer.grant.completed(1);
}

void ReceiveQueues::leave(RecvTransfer& transfer) {
  QueueSource& source = transfer.link->large.source;
  const QueuePlace place = transfer.place;
  if (!transfer.held) {
    if (transfer.quarantined) {
      transfer.quarantined = false;
      --quarantined_;
      assigner_.closed(source, place.mailbox);
    }
    return;
  }
  transfer.held = false;
  queues_[place.queue].transfer = nullptr;
  used_ &= ~(1u << place.queue);
  if (transfer.quarantined) {
    assigner_.quarantine(source, place);
  } else {
    assigner_.close(source, place);
  }
  stop(place.queue);
  transfer.stuck |= static_cast<uint8_t>(to_stop_ & (1u << place.queue));
}

void ReceiveQueues::stop(uint32_t index) {
  Queue& queue = queues_[index];
  // A card that is gone or was reset has stopped the queue, which another program may own by now.
  const bool there = queue.ring != nullptr && works_.health.error() == 0;
  const int rc = there ? works_.endpoint.close_dedicated(index) : 0;
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
  assigner_.quarantine(request.origin.link->large.source, request.place);
  stop(request.place.queue);
}

void ReceiveQueues::end_quarantine(Request& request) {
  if (request.quarantined) {
    forget_quarantine(request.quarantined);
    assigner_.closed(request.origin.link->large.source, request.place.mailbox);
  }
}

void ReceiveQueues::end_session(Link& link) {
  const uint32_t dead =
      assigner_.died(link.large.source, now_us() + 4 * uint64_t{works_.response_timeout_us});
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
  if (link.large.source.resting() &&
      std::find(resting_.begin(), resting_.end(), &link) == resting_.end()) {
    resting_.push_back(&link);
  }
}

void ReceiveQueues::end_rests() {
  if (!resting_.empty()) {
    const uint64_t now = now_us();
    std::erase_if(resting_, [&](Link* link) { return assigner_.rested(link->large.source, now); });
  }
}

}  // namespace rio::msg
