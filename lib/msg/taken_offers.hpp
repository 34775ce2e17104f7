/// @file
/// Keeps the offers of receivers until the messages that they are for are sent. See
/// docs/decisions/0015-large-data.md, "Offers".
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "lib/msg/large_control.hpp"
#include "lib/msg/offer.hpp"

namespace rio::msg {

/// Part of a port's sender; used only on the port's thread.
class TakenOffers {
 public:
  explicit TakenOffers(const LargeWorks& works) : control_(works.control) {}

  /// OFFER arrived. @param context the peer's. @return false: the peer broke the protocol.
  [[nodiscard]] bool on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes);
  /// REVOKE arrived. @param context the peer's. @return false: the peer broke the protocol.
  [[nodiscard]] bool on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes);

  /// Hot. Whether no peer has made an offer in its current session.
  [[nodiscard]] bool empty() const { return takers_.empty(); }
  /// Take the offer for the message that is about to be sent. @param context the peer's. @return
  /// null: no offer fits.
  [[nodiscard]] const OfferBody* take(const Link& link, uint32_t context, const RequestBody& body);

  void end_session(const Link& link);

 private:
  [[nodiscard]] OfferTaker& taker(const Link& link, uint32_t context);

  LargeControl& control_;
  std::unordered_map<uint64_t, OfferTaker> takers_;  // key: index of the link, and context
};

}  // namespace rio::msg
