/// @file
/// Requests to send large data that have arrived and were not answered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/msg/inflows.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/made_offers.hpp"
#include "lib/msg/receive_queues.hpp"

namespace rio::msg {

/// Part of a port's receiver; used only on the port's thread. Owns all requests; those in a
/// context's hands are lent.
class Requests {
 public:
  Requests(const LargeWorks& works, ReceiveQueues& queues, MadeOffers& offers)
      : inflows_(works.inflows), control_(works.control), queues_(queues), offers_(offers) {}

  /// REQUEST, which takes a record. @param number of it, as Link::number_in() gave before.
  /// @return the request, to be put into the inbox; null: the peer has lied.
  [[nodiscard]] Request* on_request(Link& link, const Header& header,
                                    std::span<const uint8_t> bytes, uint16_t number);
  /// The user has answered it. @param record whether it has taken one.
  void free(Request* request, bool record);
  /// As MessageContext::refuse_large(). @param record whether it has taken one.
  void refuse(Request* request, bool record = true);
  /// As MessageContext::keep_large().
  void keep(Request& request);
  /// The place that it has accepted is not its own any more: what its sender sends already goes
  /// astray, until it has stopped.
  void park(Request& request, StopCause cause);

  [[nodiscard]] Request* find(const Link& link, uint32_t id) const;
  /// CLOSED for a request that was not answered. @return false: the peer has lied.
  [[nodiscard]] bool close(Request& request, const StopBody& body);
  void end_session(Link& link, int error);

 private:
  void say_stop(const Request& request, uint8_t reason);

  Inflows& inflows_;
  LargeControl& control_;
  ReceiveQueues& queues_;
  MadeOffers& offers_;
  std::vector<std::unique_ptr<Request>> requests_;  // all that there are
  std::vector<Request*> spare_;
};

}  // namespace rio::msg
