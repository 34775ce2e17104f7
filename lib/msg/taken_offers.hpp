/// @file
/// Offers of receivers: kept until the message that they are for is sent. See
/// docs/decisions/0015-large-data.md, "Offers".
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "lib/msg/large_works.hpp"
#include "lib/msg/offer.hpp"

namespace rio::msg {

/// Part of a port's sender; used only on the port's thread.
class TakenOffers {
 public:
  explicit TakenOffers(const LargeWorks& works) : control_(works.control) {}

  /// OFFER. @param context the peer's. @return false: the peer has lied.
  [[nodiscard]] bool on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes);
  /// REVOKE. @param context the peer's. @return false: the peer has lied.
  [[nodiscard]] bool on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes);

  /// Hot. Whether no peer has ever offered anything in its session of now.
  [[nodiscard]] bool empty() const { return takers_.empty(); }
  /// The offer for the message that is about to be sent, which is held no more. @param context the
  /// peer's. @return null: there is none that fits.
  [[nodiscard]] const OfferBody* take(const Link& link, uint32_t context, const RequestBody& body);

  void end_session(const Link& link);

 private:
  [[nodiscard]] OfferTaker& taker(const Link& link, uint32_t context);

  LargeControl& control_;
  std::unordered_map<uint64_t, OfferTaker> takers_;  // by index of the link and context
};

}  // namespace rio::msg
