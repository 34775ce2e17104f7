#include "lib/msg/taken_offers.hpp"

#include "lib/msg/control.hpp"

namespace rio::msg {

/// The OfferTaker of a peer's context, without an offer that a message sent meanwhile has refused.
OfferTaker& TakenOffers::taker(const Link& link, uint32_t context) {
  OfferTaker& taker = takers_[uint64_t{link.index()} << 32 | context];
  if (taker.held() && taker.message_number() != link.number_out(context)) {
    taker.lapse();
  }
  return taker;
}

bool TakenOffers::on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  OfferBody body;
  if (read(bytes, &body) != 0 || body.message_number > UINT16_MAX) {
    return false;
  }
  // Message numbers are modulo 2^16, like credits.
  const auto ahead = static_cast<int16_t>(link.number_out(context) - body.message_number);
  return taker(link, context)
             .on_offer(body, body.message_number + static_cast<uint32_t>(int32_t{ahead})) == 0;
}

bool TakenOffers::on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  RevokeBody body;
  bool answer = false;
  if (read(bytes, &body) != 0 || taker(link, context).on_revoke(body.offer, &answer) != 0) {
    return false;
  }
  if (answer) {
    control_.answer({&link, link.session, Kind::kRevoked, body.offer, 0, 0,
                     static_cast<uint16_t>(context), link.number_out(context)});
  }
  return true;
}

const OfferBody* TakenOffers::take(const Link& link, uint32_t context, const RequestBody& body) {
  return taker(link, context).take(body.message_number, body.len_bytes, body.match_bits);
}

void TakenOffers::end_session(const Link& link) {
  std::erase_if(takers_, [&](const auto& each) { return each.first >> 32 == link.index(); });
}

}  // namespace rio::msg
