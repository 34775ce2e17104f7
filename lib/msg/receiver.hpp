/// @file
/// Receives of large data: a request waits for its match, then for a queue, and then its entries
/// are posted in windows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/msg/context_slot.hpp"
#include "lib/msg/large_works.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/made_offers.hpp"
#include "lib/msg/receive_queues.hpp"
#include "lib/msg/requests.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Receiver {
 public:
  explicit Receiver(const LargeWorks& works)
      : works_(works),
        queues_(works),
        offers_(queues_, works.control),
        requests_(works, queues_, offers_) {}
  /// @return 0, -ENOMEM.
  [[nodiscard]] int create();

  /// Requests that were not answered yet.
  [[nodiscard]] Requests& requests() { return requests_; }
  /// Offers, made before a peer asked.
  [[nodiscard]] MadeOffers& offers() { return offers_; }

  /// As MessageContext::receive_large().
  void receive(ContextSlot& context, Request* request, void* buffer, uint64_t capacity,
               RecvTransfer& transfer);
  void cancel(RecvTransfer& transfer);
  /// CLOSED. @return false: the peer has lied.
  [[nodiscard]] bool on_closed(Link& link, std::span<const uint8_t> bytes);

  /// The peer is gone: its queues are stopped, its mailboxes rest.
  void end_session(Link& link, int error);
  void progress();
  /// Whether progress() has anything to do.
  [[nodiscard]] bool busy() const {
    return queues_.busy() || offers_.any_open() || !working_.empty();
  }
  /// Whether large data may come that no transfer waits for.
  [[nodiscard]] bool late_possible() const { return queues_.late_possible(); }

 private:
  void accept(const Request& request, RecvTransfer& transfer);
  [[nodiscard]] RecvTransfer* find(const Link& link, uint32_t id) const;
  void work(RecvTransfer& transfer);
  void serve();
  void begin(RecvTransfer& transfer, const QueuePlace& place);
  [[nodiscard]] bool look(RecvTransfer& transfer);
  [[nodiscard]] bool say_total(RecvTransfer& transfer);
  [[nodiscard]] bool say_abort(RecvTransfer& transfer);
  void finish(RecvTransfer& transfer, int status);

  LargeWorks works_;
  ReceiveQueues queues_;
  MadeOffers offers_;
  Requests requests_;
  std::vector<RecvTransfer*> working_;
};

}  // namespace rio::msg
