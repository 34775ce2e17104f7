// Offers of receivers: kept until the message that they are for is sent.
#include <algorithm>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/registrations.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {

/// Of the peer's context; it holds nothing that a message sent meanwhile has refused.
OfferTaker& Sender::taker(const Link& link, uint32_t context) {
  OfferTaker& taker = takers_[uint64_t{link.index()} << 32 | context];
  if (taker.held() && taker.message_number() != link.number_out(context)) {
    taker.lapse();
  }
  return taker;
}

bool Sender::on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  OfferBody body;
  if (read(bytes, &body) != 0 || body.message_number > UINT16_MAX) {
    return false;
  }
  // Numbers are those of credits, modulo 2^16.
  const auto ahead = static_cast<int16_t>(link.number_out(context) - body.message_number);
  return taker(link, context)
             .on_offer(body, body.message_number + static_cast<uint32_t>(int32_t{ahead})) == 0;
}

bool Sender::on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  RevokeBody body;
  bool answer = false;
  if (read(bytes, &body) != 0 || taker(link, context).on_revoke(body.offer, &answer) != 0) {
    return false;
  }
  if (answer) {
    port_.answer({&link, link.session, Kind::kRevoked, body.offer, 0, 0,
                  static_cast<uint16_t>(context), link.number_out(context)});
  }
  return true;
}

/// The message is about to be sent; if there is an offer for it that fits, it goes with that.
void Sender::accept(const Route& route, RequestBody& body, SendTransfer& transfer) {
  OfferTaker& offers = taker(*route.link, HeaderWords{0, route.word}.to());
  const OfferBody* const offer = offers.take(body.message_number, body.len_bytes, body.match_bits);
  // The cut of an offer is that of memory which agrees with ours, and of a card like ours.
  if (offer == nullptr || transfer.edge_bytes != 0 || offer->unit_bytes != rules_.dedicated_size ||
      rules_.message_max != pmd::mem::kMessagePage ||
      offered_cut(*offer, transfer.rest_bytes, &transfer.cut) != 0) {
    return;
  }
  const auto messages =
      static_cast<uint32_t>(std::min<uint64_t>(pmd::mem::cut_messages(transfer.cut), UINT32_MAX));
  body.offer = offer->offer;
  transfer.granted_bytes = transfer.rest_bytes;
  transfer.region = port_.memory_->get(transfer.rest, transfer.rest_bytes);
  transfer.grant.accept(offer->mailbox, messages, std::min<uint32_t>(offer->window, messages));
}

}  // namespace rio::msg
