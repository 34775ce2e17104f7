/// @file
/// Offers to peers: a queue that is open before the peer asks. See
/// docs/decisions/0015-large-data.md, "Offers".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/msg/large_control.hpp"
#include "lib/msg/offer.hpp"
#include "lib/msg/receive_queues.hpp"

namespace rio::msg {

/// Part of a port's receiver; used only on the port's thread.
class MadeOffers {
 public:
  MadeOffers(ReceiveQueues& queues, LargeControl& control) : queues_(queues), control_(control) {}

  /// As MessageContext::offer_large().
  [[nodiscard]] int offer(Link& link, uint16_t context, uint64_t match_bits, uint64_t ignore_bits,
                          void* buffer, uint64_t capacity);
  /// As MessageContext::revoke_offer().
  void revoke(Link& link, uint16_t context);
  /// REVOKED. @param context ours. @return false: the peer has lied.
  [[nodiscard]] bool on_revoked(Link& link, uint32_t context, std::span<const uint8_t> bytes);
  /// A request came: if it accepts an offer, its place is the offer's. @param number of its
  /// message. @return false: the peer has lied.
  [[nodiscard]] bool take(Request& request, uint16_t number);

  /// An accepted offer was for the right buffer.
  void helped(const Link& link, uint32_t context);
  /// An offer was of no use: the next ones are not made.
  void did_not_help(const Link& link, uint32_t context);

  void progress();
  void end_session(const Link& link);
  /// Whether any offer waits for its answer.
  [[nodiscard]] bool any_open() const { return open_count_ != 0; }

 private:
  /// Of one peer, for one context.
  struct Offer {
    Link* link;
    uint16_t context;
    OfferMaker maker;
    OfferBody body;
    QueuePlace place;
    const void* buffer;
    uint64_t age;
    bool say_revoke;
    uint32_t skip;     // offers not to be made, since the last ones were refused
    uint32_t refused;  // in a row

    void failed();
  };

  [[nodiscard]] Offer* find(const Link& link, uint32_t context);
  void end(Offer& offer, bool refused);

  ReceiveQueues& queues_;
  LargeControl& control_;
  uint32_t open_count_ = 0;
  uint64_t age_ = 0;
  std::vector<std::unique_ptr<Offer>> offers_;  // one for each peer and context that had any
};

}  // namespace rio::msg
