/// @file
/// Receives large data: a request waits for a match, then for a dedicated queue; then its entries
/// are posted in windows.
#pragma once

#include <cstdint>
#include <span>

#include "lib/msg/large_control.hpp"
#include "lib/msg/made_offers.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/recv_stripes.hpp"
#include "lib/msg/registrations.hpp"
#include "lib/msg/requests.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Receiver {
 public:
  explicit Receiver(const PortObjects& works)
      : works_(works), offers_(works.control), requests_(works, offers_), stripes_(works) {}

  /// Requests of peers that are not answered yet.
  [[nodiscard]] Requests& requests() { return requests_; }
  /// Offers made to peers.
  [[nodiscard]] MadeOffers& offers() { return offers_; }

  /// Implements MessageContext::receive_large().
  void receive(ContextSlot& context, Request* request, void* buffer, uint64_t capacity,
               RecvTransfer& transfer);
  void cancel(RecvTransfer& transfer);
  /// CLOSED arrived. @return false: the peer broke the protocol.
  [[nodiscard]] bool on_closed(Link& link, std::span<const uint8_t> bytes);

  /// The session is over: end its transfers, stop its queues, and let its mailboxes rest.
  void end_session(Link& link, int error);
  /// The card of a rail is gone: its transfers wait for a queue of another rail.
  void card_gone(Rail& rail);
  void progress();
  /// Take what has arrived in dedicated queues. Bounded.
  void take_all();
  /// Whether progress() has anything to do.
  [[nodiscard]] bool busy() const;

 private:
  void accept(const Request& request, RecvTransfer& transfer);
  [[nodiscard]] bool begin_read(RecvTransfer& transfer, uint64_t shown_at);
  void end_read(RecvTransfer& transfer);
  [[nodiscard]] bool say_read(RecvTransfer& transfer);
  void progress_reads();
  void lose_read();
  void progress(Rail& rail);
  void wait(RecvTransfer& transfer);
  [[nodiscard]] bool move(RecvTransfer& transfer);
  void stop(RecvTransfer& transfer, StopCause cause);
  void stop_all(RecvTransfer& whole, StopCause cause);
  void end_unknown(RecvTransfer& whole, StopCause cause);
  void serve(Rail& rail);
  void begin(RecvTransfer& transfer, const QueuePlace& place);
  [[nodiscard]] bool look(RecvTransfer& transfer);
  [[nodiscard]] bool look_at_whole(RecvTransfer& transfer);
  [[nodiscard]] bool say_total(RecvTransfer& transfer);
  [[nodiscard]] bool say_abort(RecvTransfer& transfer);
  void lose_card(RecvTransfer& transfer);
  void finish(RecvTransfer& transfer, int status);

  PortObjects works_;
  MadeOffers offers_;
  Requests requests_;
  RecvStripes stripes_;
  WorkList<RecvTransfer> working_;
  uint32_t reads_ = 0;       // transfers whose data the card is reading
  uint32_t dead_reads_ = 0;  // those of them whose session is over
  uint64_t give_up_ns_ = 0;  // when the card is no longer waited for, if there are any
};

}  // namespace rio::msg
