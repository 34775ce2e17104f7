// How receives of large data end other than well, and what becomes of their queues.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/receiver.hpp"

namespace rio::msg {

bool Receiver::on_closed(Link& link, std::span<const uint8_t> bytes) {
  StopBody body;
  if (read_closed(bytes, &body) != 0 || body.transfer > link.large.requests_seen) {
    return false;
  }
  if (Request* const request = find_request(link, body.transfer); request != nullptr) {
    return close_request(*request, body);
  }
  RecvTransfer* const transfer = find(link, body.transfer);
  if (transfer != nullptr && transfer->held) {
    static_cast<void>(
        reap(queues_[transfer->place.queue]));  // what was sent before CLOSED is there
  }
  if (transfer == nullptr || transfer->grant.state() == RecvGrant::State::kDone) {
    // All has arrived, but for an answer to the sender.
    if (body.again != 0 && body.attempt + 1 < kAttemptsMax) {
      const auto next = static_cast<uint8_t>(body.attempt + 1);
      port_.answer({&link, link.session, Kind::kDone, body.transfer, next, 0});
    }
    return true;
  }
  RecvGrant& grant = transfer->grant;
  const bool current = body.attempt == grant.attempt();
  if (grant.on_closed(body.attempt, body.arrived, {body.reason, body.again != 0}) != 0) {
    return false;
  }
  if (!current) {
    return true;
  }
  assigner_.unwait(transfer->waiter);
  leave(*transfer);
  transfer->say_abort = false;
  if (grant.state() == RecvGrant::State::kWaiting) {
    // What did arrive need not come again.
    if (transfer->granted && !transfer->say_kept) {
      transfer->arrived_bytes +=
          pmd::mem::cut_message(transfer->cut, rules_, grant.kept()).offset_bytes;
    }
    transfer->granted = false;
    transfer->say_kept = false;
    transfer->broken = false;
    if (transfer->rest_bytes == 0) {
      transfer->say_abort = grant.stop({StopReason::kEnough, false});
    } else {
      assigner_.wait(link.large.source, transfer->waiter);
    }
  }
  work(*transfer);
  return true;
}

/// Its queue and mailbox are not its any more.
void Receiver::leave(RecvTransfer& transfer) {
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
  stop_queue(place.queue);
  transfer.stuck |= static_cast<uint8_t>(to_stop_ & (1u << place.queue));
}

void Receiver::stop_queue(uint32_t index) {
  Queue& queue = queues_[index];
  // A card that is gone, or was reset, has stopped it; it may be somebody else's by now.
  const bool there = queue.ring != nullptr && port_.error() == 0;
  const int rc = there ? port_.endpoint().close_dedicated(index) : 0;
  if (rc == -ETIMEDOUT) {
    to_stop_ |= 1u << index;  // its memory is still the card's
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

void Receiver::end_session(Link& link, int error) {
  while (!link.large.requests.empty()) {
    Request& request = *link.large.requests.front();
    link.large.requests.erase(request);
    request.gone = error;
    quarantined_ -= request.quarantined ? 1 : 0;
    if (request.refused) {
      spare_.push_back(&request);
    }
  }
  std::erase_if(offers_, [&](const std::unique_ptr<Offer>& offer) {
    open_offers_ -= offer->link == &link && offer->maker.state() != OfferMaker::State::kNone;
    return offer->link == &link;
  });
  link.large.requests_seen = 0;
  const uint32_t stop =
      assigner_.died(link.large.source, port_.now_us() + 4 * uint64_t{port_.response_timeout_us()});
  for (uint32_t i = 0; i < kQueues; ++i) {
    if ((stop & (1u << i)) != 0) {
      RecvTransfer* const transfer = std::exchange(queues_[i].transfer, nullptr);
      used_ &= ~(1u << i);
      stop_queue(i);
      if (transfer != nullptr) {
        transfer->stuck |= static_cast<uint8_t>(to_stop_ & (1u << i));
      }
    }
  }
  while (!link.large.receives.empty()) {
    RecvTransfer& transfer = *link.large.receives.front();
    link.large.receives.erase(transfer);
    quarantined_ -= transfer.quarantined ? 1 : 0;
    transfer.quarantined = false;
    transfer.dead = true;
    transfer.status = error;
    transfer.grant.died({StopReason::kFailed, false});
    work(transfer);
  }
  if (link.large.source.resting() &&
      std::find(resting_.begin(), resting_.end(), &link) == resting_.end()) {
    resting_.push_back(&link);
  }
}

}  // namespace rio::msg
