// Offers: a queue that is open before the peer asks. See docs/decisions/0015-large-data.md,
// "Offers".
#include <algorithm>
#include <cerrno>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/registrations.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kSkipMax = 256;
constexpr uint32_t kUnitMin = 8;  // that an offer can say

}  // namespace

Receiver::Offer* Receiver::find_offer(const Link& link, uint32_t context) {
  const auto it = std::find_if(offers_.begin(), offers_.end(), [&](const auto& offer) {
    return offer->link == &link && offer->context == context;
  });
  return it == offers_.end() ? nullptr : it->get();
}

int Receiver::offer(Link& link, uint16_t context, uint64_t match_bits, uint64_t ignore_bits,
                    void* buffer, uint64_t capacity) {
  // Where others are under way the peer is likely to have asked already.
  if (link.state != LinkState::kUp || !link.in[context].open || !link.large.receives.empty() ||
      !link.large.requests.empty() || rules_.dedicated_size < kUnitMin || buffer == nullptr ||
      capacity == 0 || capacity > kTransferMax) {
    return -EAGAIN;
  }
  Offer* offer = find_offer(link, context);
  if (offer == nullptr) {
    offers_.push_back(std::make_unique<Offer>());
    offer = offers_.back().get();
    offer->link = &link;
    offer->context = context;
  }
  if (offer->maker.state() != OfferMaker::State::kNone) {
    return -EAGAIN;
  }
  if (offer->skip != 0) {
    --offer->skip;
    return -EAGAIN;
  }
  QueuePlace place;
  if (!assigner_.offer(link.large.source, &place)) {
    return -EAGAIN;
  }
  const auto at = reinterpret_cast<uintptr_t>(buffer);
  OfferBody& body = offer->body;
  body = {};
  body.offer = offer->maker.number() + 1;
  body.message_number = link.number_in(context);
  body.len_max = capacity;
  body.match_bits = match_bits;
  body.ignore_bits = ignore_bits;
  body.head_bytes = static_cast<uint16_t>((0 - at) % pmd::mem::kMessagePage);
  body.unit_bytes = static_cast<uint16_t>(rules_.dedicated_size);
  body.window = kWindow;
  body.mailbox = place.mailbox;
  if (!open(link, place) || !port_.say_body(link, Kind::kOffer, &body, sizeof(body), 0, context)) {
    assigner_.close(link.large.source, place);
    stop_queue(place.queue);
    return -EAGAIN;
  }
  static_cast<void>(offer->maker.open(body.message_number));
  offer->place = place;
  offer->buffer = buffer;
  offer->age = ++offer_age_;
  offer->say_revoke = false;
  ++open_offers_;
  return 0;
}

void Receiver::revoke(Link& link, uint16_t context) {
  Offer* const offer = find_offer(link, context);
  if (offer != nullptr && offer->maker.revoke()) {
    offer->say_revoke = true;
  }
}

bool Receiver::on_revoked(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  RevokeBody body;
  Offer* const offer = find_offer(link, context);
  if (offer == nullptr || read(bytes, &body) != 0 || offer->maker.on_revoked(body.offer) != 0) {
    return false;
  }
  end_offer(*offer, false);
  return true;
}

/// It is over, and nothing was sent on it.
void Receiver::end_offer(Offer& offer, bool refused) {
  --open_offers_;
  if (refused) {
    offer.failed();
  }
  assigner_.release(offer.link->large.source, offer.place);
}

void Receiver::look_at_offers() {
  Offer* oldest = nullptr;
  for (const std::unique_ptr<Offer>& each : offers_) {
    Offer& offer = *each;
    if (offer.maker.state() == OfferMaker::State::kNone) {
      continue;
    }
    const uint32_t passed = offer.link->number_in(offer.context);
    if (passed != offer.body.message_number) {
      auto answer = OfferMaker::Answer::kNone;
      if (offer.maker.on_message(offer.body.message_number, 0, &answer) == 0) {
        end_offer(offer, true);
      }
      continue;
    }
    if (offer.maker.state() == OfferMaker::State::kOpen &&
        (oldest == nullptr || offer.age < oldest->age)) {
      oldest = &offer;
    }
    if (offer.say_revoke) {
      const RevokeBody body = {offer.maker.number()};
      offer.say_revoke =
          !port_.say_body(*offer.link, Kind::kRevoke, &body, sizeof(body), 0, offer.context);
    }
  }
  if (oldest != nullptr && assigner_.wants_revoke() && oldest->maker.revoke()) {
    oldest->say_revoke = true;
  }
}

/// A request came: does it answer the offer? @return false: the peer has lied.
/// @param number of its message.
bool Receiver::take_offer(Offer& offer, Request& request, uint16_t number) {
  const RequestBody& body = request.body;
  auto answer = OfferMaker::Answer::kNone;
  if (offer.maker.on_message(number, body.offer, &answer) != 0) {
    return false;
  }
  if (answer != OfferMaker::Answer::kAccepted) {
    if (answer == OfferMaker::Answer::kRefused) {
      end_offer(offer, true);
    }
    return true;
  }
  --open_offers_;
  assigner_.accepted(offer.link->large.source, offer.place);
  request.accepted = true;
  request.place = offer.place;
  request.window = offer.body.window;
  request.buffer = offer.buffer;
  const bool matches = ((body.match_bits ^ offer.body.match_bits) & ~offer.body.ignore_bits) == 0;
  const bool fits = body.message_number == number && body.edge_bytes == 0 &&
                    body.len_bytes <= offer.body.len_max && matches;
  return fits && offered_cut(offer.body, body.len_bytes, &request.cut) == 0;
}

/// The buffer is the one that was offered: program what the peer sends already.
void Receiver::accept(const Request& request, RecvTransfer& transfer) {
  const auto messages = static_cast<uint32_t>(pmd::mem::cut_messages(request.cut));
  transfer.cut = request.cut;
  transfer.region = port_.memory_->get(transfer.rest, transfer.rest_bytes);
  transfer.held = true;
  transfer.granted = true;
  transfer.say_kept = true;
  queues_[transfer.place.queue].transfer = &transfer;
  used_ |= 1u << transfer.place.queue;
  if (Offer* const offer = find_offer(*transfer.link, request.header.to); offer != nullptr) {
    offer->refused = 0;
  }
  transfer.grant.start(messages, kWindow);
  transfer.grant.told_by_offer(std::min(request.window, messages));
  port_.watch(*transfer.link, 0);
  post(transfer);
  work(transfer);
}

void Receiver::keep(Request& request) {
  if (request.gone == 0 && request.accepted) {
    park(request, {0, true});
  }
}

/// It did not help: the next ones are not made.
void Receiver::Offer::failed() {
  refused = std::min(2 * refused + 1, kSkipMax);
  skip = refused;
}

void Receiver::say_stop(const Request& request, uint8_t reason) {
  Link& link = *request.origin.link;
  port_.answer(
      {&link, link.session, Kind::kAbort, request.body.transfer, request.grant.attempt(), reason});
}

/// What it sends already goes astray, and its place is another's until it has stopped.
void Receiver::park(Request& request, StopCause cause) {
  const auto messages = static_cast<uint32_t>(pmd::mem::cut_messages(request.cut));
  request.grant.told_by_offer(std::min(request.window, messages));
  static_cast<void>(request.grant.stop(cause));
  if (Offer* const offer = find_offer(*request.origin.link, request.header.to);
      offer != nullptr && cause.again) {
    offer->failed();
  }
  request.accepted = false;
  request.parked = true;
  request.quarantined = true;
  ++quarantined_;
  assigner_.quarantine(request.origin.link->large.source, request.place);
  stop_queue(request.place.queue);
  say_stop(request, cause.reason);
}

/// CLOSED for a request that was not answered. @return false: the peer has lied.
bool Receiver::close_request(Request& request, const StopBody& body) {
  Link& link = *request.origin.link;
  if (request.accepted) {  // it gave up before we knew what to do with it
    const auto messages = static_cast<uint32_t>(pmd::mem::cut_messages(request.cut));
    request.grant.told_by_offer(std::min(request.window, messages));
    static_cast<void>(request.grant.stop({0, true}));
    request.accepted = false;
    request.parked = true;
    assigner_.close(link.large.source, request.place);
    stop_queue(request.place.queue);
  }
  if (request.parked) {
    const bool current = body.attempt == request.grant.attempt();
    if (request.grant.on_closed(body.attempt, body.arrived, {body.reason, body.again != 0}) != 0) {
      return false;
    }
    if (!current) {
      return true;
    }
    if (request.quarantined) {
      request.quarantined = false;
      --quarantined_;
      assigner_.closed(link.large.source, request.place.mailbox);
    }
    if (request.grant.state() != RecvGrant::State::kEnded) {
      return true;
    }
  } else if (body.again != 0 || body.arrived != 0) {
    return false;
  }
  link.large.requests.erase(request);
  request.gone = -ECANCELED;
  if (request.refused) {
    spare_.push_back(&request);
  }
  return true;
}

}  // namespace rio::msg
