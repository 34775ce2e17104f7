/// @file
/// Offers to peers: a queue is opened before the peer sends its request. See
/// docs/decisions/0015-large-data.md, "Offers".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/msg/large_control.hpp"
#include "lib/msg/offer.hpp"

namespace rio::msg {

/// Part of a port's receiver; used only on the port's thread.
class MadeOffers {
 public:
  explicit MadeOffers(LargeControl& control) : control_(control) {}

  /// Implements MessageContext::offer_large().
  [[nodiscard]] int offer(Link& link, uint16_t context, uint64_t match_bits, uint64_t ignore_bits,
                          void* buffer, uint64_t capacity);
  /// Implements MessageContext::revoke_offer().
  void revoke(Link& link, uint16_t context);
  /// REVOKED arrived. @param context ours. @return false: the peer broke the protocol.
  [[nodiscard]] bool on_revoked(Link& link, uint32_t context, std::span<const uint8_t> bytes);
  /// A request arrived. If it accepts an offer, it gets the offer's place. @param number its
  /// message number. @return false: the peer broke the protocol.
  [[nodiscard]] bool take(Request& request, uint16_t number);

  /// An accepted offer has ended. @param helped it was for the buffer that the request was received
  /// into; false: it was useless, so skip the next ones.
  void note_end(const Link& link, uint32_t context, bool helped);

  void progress();
  void end_session(const Link& link);
  /// Whether any offer is open.
  [[nodiscard]] bool any_open() const { return open_count_ != 0; }

 private:
  /// Offers to one peer for one context.
  struct Offer {
    Link* link = nullptr;  // null: its session is over, and the entry is free
    uint16_t context = 0;
    Path* path = nullptr;  // of the place
    OfferMaker maker{};
    OfferBody body{};
    QueuePlace place{};
    const void* buffer = nullptr;
    uint64_t age = 0;
    bool say_revoke = false;
    uint32_t skip = 0;     // how many offers to skip, because the last ones were refused
    uint32_t refused = 0;  // in a row

    void failed();
  };

  [[nodiscard]] Offer* find(const Link& link, uint32_t context);
  void end(Offer& offer, bool refused);

  LargeControl& control_;
  uint32_t open_count_ = 0;
  uint64_t age_ = 0;
  // One for each peer and context with an offer in this session, or free. Only offer() moves them.
  std::vector<Offer> offers_;
};

}  // namespace rio::msg
