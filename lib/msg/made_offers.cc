#include "lib/msg/made_offers.hpp"

#include <algorithm>
#include <cerrno>

#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kSkipMax = 256;
constexpr uint32_t kUnitMin = 8;  // smallest unit of an offer, in bytes

}  // namespace

MadeOffers::Offer* MadeOffers::find(const Link& link, uint32_t context) {
  const auto it = std::find_if(offers_.begin(), offers_.end(), [&](const Offer& offer) {
    return offer.link == &link && offer.context == context;
  });
  return it == offers_.end() ? nullptr : &*it;
}

int MadeOffers::offer(Link& link, uint16_t context, uint64_t match_bits, uint64_t ignore_bits,
                      void* buffer, uint64_t capacity) {
  // If other transfers are under way, the peer has probably sent its next request already.
  // Data that the card reads needs no place. Making room for OFFER may end the session, so
  // may_say() comes before a place is taken.
  if (link.large.reads.value_or(false) || !link.in[context].open || link.peer_rails != nullptr ||
      !link.large.receives.is_empty() || !link.large.requests.is_empty() ||
      link.path->rail.queues.rules().dedicated_size < kUnitMin || buffer == nullptr ||
      capacity == 0 || capacity > kTransferMax || !control_.may_say(link)) {
    return -EAGAIN;
  }
  Offer* offer = find(link, context);
  if (offer == nullptr) {
    const auto unused = std::ranges::find(offers_, nullptr, &Offer::link);
    offer = unused != offers_.end() ? &*unused : &offers_.emplace_back();
    *offer = {&link, context};
  }
  if (offer->maker.state() != OfferMaker::State::kNone) {
    return -EAGAIN;
  }
  if (offer->skip != 0) {
    --offer->skip;
    return -EAGAIN;
  }
  QueuePlace place;
  ReceiveQueues& queues = link.path->rail.queues;
  if (!queues.assigner().offer(link.path->source, &place)) {
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
  body.unit_bytes = static_cast<uint16_t>(queues.rules().dedicated_size);
  body.window = ReceiveQueues::kWindow;
  body.mailbox = place.mailbox;
  if (!queues.open(*link.path, place) ||
      !control_.say(link, Kind::kOffer, &body, sizeof(body), 0, context)) {
    queues.assigner().close(link.path->source, place);
    queues.stop(place.queue);
    return -EAGAIN;
  }
  static_cast<void>(offer->maker.open(body.message_number));
  offer->path = link.path;
  offer->place = place;
  offer->buffer = buffer;
  offer->age = ++age_;
  offer->say_revoke = false;
  ++open_count_;
  return 0;
}

void MadeOffers::revoke(Link& link, uint16_t context) {
  Offer* const offer = find(link, context);
  if (offer != nullptr && offer->maker.revoke()) {
    offer->say_revoke = true;
  }
}

bool MadeOffers::on_revoked(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  RevokeBody body;
  Offer* const offer = find(link, context);
  if (offer == nullptr || read(bytes, &body) != 0 || offer->maker.on_revoked(body.offer) != 0) {
    return false;
  }
  end(*offer, false);
  return true;
}

/// End an offer on which nothing was sent.
void MadeOffers::end(Offer& offer, bool refused) {
  --open_count_;
  if (refused) {
    offer.failed();
  }
  offer.path->rail.queues.assigner().release(offer.path->source, offer.place);
}

void MadeOffers::progress() {
  if (open_count_ == 0) {
    return;
  }
  Offer* oldest = nullptr;
  for (Offer& offer : offers_) {
    if (offer.maker.state() == OfferMaker::State::kNone) {
      continue;
    }
    const uint32_t passed = offer.link->number_in(offer.context);
    if (passed != offer.body.message_number) {
      auto answer = OfferMaker::Answer::kNone;
      if (offer.maker.on_message(offer.body.message_number, 0, &answer) == 0) {
        end(offer, true);
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
          !control_.say(*offer.link, Kind::kRevoke, &body, sizeof(body), 0, offer.context);
    }
  }
  if (oldest != nullptr && oldest->path->rail.queues.assigner().wants_revoke() &&
      oldest->maker.revoke()) {
    oldest->say_revoke = true;
  }
}

bool MadeOffers::take(Request& request, uint16_t number) {
  const RequestBody& body = request.body;
  Offer* const made = find(*request.origin.link, request.header.to);
  if (made == nullptr) {
    return body.offer == 0;
  }
  Offer& offer = *made;
  auto answer = OfferMaker::Answer::kNone;
  if (offer.maker.on_message(number, body.offer, &answer) != 0) {
    return false;
  }
  if (answer != OfferMaker::Answer::kAccepted) {
    if (answer == OfferMaker::Answer::kRefused) {
      end(offer, true);
    }
    return true;
  }
  --open_count_;
  offer.path->rail.queues.assigner().accepted(offer.path->source, offer.place);
  request.accepted = true;
  request.path = offer.path;
  request.place = offer.place;
  request.window = offer.body.window;
  request.buffer = offer.buffer;
  const bool matches = ((body.match_bits ^ offer.body.match_bits) & ~offer.body.ignore_bits) == 0;
  const bool fits = body.message_number == number && body.edge_bytes == 0 &&
                    body.len_bytes <= offer.body.len_max && matches;
  return fits && offered_cut(offer.body, body.len_bytes, &request.cut) == 0;
}

/// Skip the next offers, because this one was useless.
void MadeOffers::Offer::failed() {
  refused = std::min(2 * refused + 1, kSkipMax);
  skip = refused;
}

void MadeOffers::note_end(const Link& link, uint32_t context, bool helped) {
  Offer* const offer = find(link, context);
  if (offer != nullptr && helped) {
    offer->refused = 0;
  } else if (offer != nullptr) {
    offer->failed();
  }
}

void MadeOffers::end_session(const Link& link) {
  // Nothing is erased: progress() may be iterating.
  for (Offer& offer : offers_) {
    if (offer.link == &link) {
      open_count_ -= offer.maker.state() != OfferMaker::State::kNone ? 1 : 0;
      offer = {};
    }
  }
}

}  // namespace rio::msg
