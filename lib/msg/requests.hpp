/// @file
/// Requests to send large data that have arrived and are not answered.
#pragma once

#include <cstdint>
#include <span>

#include "base/slab.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/made_offers.hpp"
#include "lib/msg/port_objects.hpp"

namespace rio::msg {

/// Part of a port's receiver; used only on the port's thread. Owns all requests, also those that a
/// context has taken.
class Requests {
 public:
  Requests(const PortObjects& works, MadeOffers& offers)
      : inflows_(works.inflows), control_(works.control), offers_(offers) {}

  /// REQUEST arrived. @param number Link::number_in() before it was counted. @return the request,
  /// to be put into the inbox; null: the peer broke the protocol, or no memory.
  [[nodiscard]] Request* on_request(Link& link, const Header& header,
                                    std::span<const uint8_t> bytes, uint16_t number);
  /// Free an answered request. @param record whether it holds a record.
  void free(Request* request, bool record);
  /// Implements MessageContext::refuse_large(). @param record whether the request holds a record.
  void refuse(Request* request, bool record = true);
  /// Implements MessageContext::keep_large().
  void keep(Request& request);
  /// Take back the place of the offer that a request has accepted. Data that its sender has sent
  /// already is discarded; the sender stops, and asks again if `cause` says so.
  void park(Request& request, StopCause cause);

  /// CLOSED arrived for an unanswered request. @return false: the peer broke the protocol.
  [[nodiscard]] bool close(Request& request, const StopBody& body);
  void end_session(Link& link, int error);

 private:
  void say_stop(const Request& request, uint8_t reason);

  Inflows& inflows_;
  LargeControl& control_;
  MadeOffers& offers_;
  base::Slab<Request> requests_;
};

}  // namespace rio::msg
