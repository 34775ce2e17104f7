/// @file
/// A user of a port: what is sent to its id comes here and to no other context.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "lib/msg/context_slot.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// The port's thread. The port outlives it.
class MessageContext {
 public:
  /// Peers that could send to a former context of this id learn of its end before the new one sends
  /// anything, so they never confuse the two. The call waits for a peer that accepts nothing.
  /// @param id below kContexts. @return 0, -EINVAL (id), -EBUSY (the port has such a context, or
  /// cannot tell of a former one's end within a second), -ENOMEM.
  [[nodiscard]] static int create(MessagePort& port, uint16_t id,
                                  std::unique_ptr<MessageContext>* out);
  /// Messages not taken yet are lost; peers are told that there is no such context. Its transfers
  /// are done; if some are not, close() it and keep it as long as the port.
  ~MessageContext();
  /// As the destructor, but transfers that are under way may still be told here.
  void close();
  MessageContext(const MessageContext&) = delete;
  MessageContext& operator=(const MessageContext&) = delete;

  /// For a caller of send_tiny(), which does not look: `hear` is called when a session ends with
  /// a peer that this context has a route to, within any call on the port, and may not call it.
  /// The next send there is to be a send(), which tells why.
  void on_session_end(std::function<void()> hear) { slot_.on_session_end = std::move(hear); }

  /// Hot. Messages that have arrived; those of one sender are in their order.
  [[nodiscard]] const Inbox& inbox() const { return slot_.inbox; }
  /// Hot. The oldest message is done with. Its sender hears of it when all of a run are.
  void drop_oldest() {
    Origin origin;
    port_.buffers_.give_back(static_cast<uint8_t*>(slot_.inbox.at(0).iov_base) - kHeaderBytes);
    if (const uint32_t count = slot_.inbox.pop(&origin); count != 0) [[unlikely]] {
      port_.inflows_.return_credit(origin, id_, count);
    }
  }
  /// Hot. So many of the oldest messages are done with. @param n 1 to Inbox::run().
  void drop_oldest(uint32_t n) {
    for (uint32_t done = 0; done < n;) {
      const uint32_t count = std::min(n - done, slot_.inbox.in_a_row(done));
      port_.buffers_.give_back(&slot_.inbox.at(done), count);
      done += count;
    }
    Origin origin;
    if (const uint32_t count = slot_.inbox.pop(n, &origin); count != 0) {
      port_.inflows_.return_credit(origin, id_, count);
    }
  }
  /// Take the oldest message out of the inbox; to be given back some time.
  [[nodiscard]] Delivery take_oldest();
  /// The buffer of a message that was taken is the port's again.
  void give_back(const Delivery& delivery) {
    port_.buffers_.give_back(static_cast<uint8_t*>(delivery.bytes.iov_base) - kHeaderBytes);
    port_.inflows_.return_credit(delivery.origin, id_, 1);
  }

  /// Large data. Until then requests of peers are refused. @param all_may_ask each peer that sends
  /// here can ask for short messages too, so that peers for whom no share is left are let in.
  /// @return 0, -ENOMEM.
  [[nodiscard]] int accept_large(bool all_may_ask = true);
  /// Ask the peer for a place, in the order of all that is sent there. @param data the transfer's
  /// until it is done. @param len_bytes 1 to kTransferMax; 0, too, where small. @param
  /// transfer new, or one that is done. @param small for what would have gone as a message or a
  /// few, if there were credit. @param immediate eight bytes that the receiver is told; null: none.
  /// @return as MessagePort::send(): transfer has begun only with 0; -EINVAL (length), -ENOMEM.
  [[nodiscard]] int send_large(const Route& route, uint64_t match_bits, const void* data,
                               uint64_t len_bytes, SendTransfer& transfer, bool small = false,
                               const uint64_t* immediate = nullptr);
  /// Take the oldest item out of the inbox, which is a request (kind_of() is Kind::kRequest). It
  /// has to be answered by receive_large() or refuse_large() some time.
  [[nodiscard]] Request* take_request();
  /// Have the data that a request offers. The request is gone afterwards. Data beyond capacity is
  /// never sent. @param buffer the transfer's until it is done. @param transfer new, or a done one.
  void receive_large(Request* request, void* buffer, uint64_t capacity, RecvTransfer& transfer);
  /// The request will be answered, but not now. To be called before the next progress where it is
  /// not answered at once: it may hold a queue that was offered.
  void keep_large(Request* request);
  /// Offer a place to the peer's next message, if it is large and matches: it is then on its way
  /// without having to ask. Its request is received as any other; where that is with another
  /// buffer than this one, or not at once, it asks after all. @param ignore_bits of match_bits
  /// that may differ. @param buffer nothing lands there before receive_large(). @return 0; -EAGAIN:
  /// no offer can be made now, or is worth it.
  [[nodiscard]] int offer_large(const Route& route, uint64_t match_bits, uint64_t ignore_bits,
                                void* buffer, uint64_t capacity);
  /// Take back the offer that the peer has, if any. It may have accepted it already.
  void revoke_offer(const Route& route);
  /// Whether the peer may send a further request here before one of its own is answered.
  [[nodiscard]] bool requests_left(const Origin& origin) const;
  /// Let it send some more than it may, which it does if it has any. @return false: there are too
  /// many unanswered ones of this port.
  [[nodiscard]] bool lend_requests(const Origin& origin);
  /// The sender is told -ECONNREFUSED. The request is gone afterwards.
  void refuse_large(Request* request);
  /// Give up. It is done, with -ECANCELED or whatever was sooner, only when nothing can land or be
  /// read any more.
  void cancel(SendTransfer& transfer);
  void cancel(RecvTransfer& transfer);
  /// Those that became done in MessagePort::progress(), each once. A transfer may go away only
  /// after it was told here. @return null: no more.
  [[nodiscard]] SendTransfer* next_sent();
  [[nodiscard]] RecvTransfer* next_received();

  [[nodiscard]] MessagePort& port() { return port_; }
  [[nodiscard]] uint16_t id() const { return id_; }

 private:
  [[nodiscard]] static bool tell_last_end(MessagePort& port, uint16_t id);
  MessageContext(MessagePort& port, uint16_t id, uint32_t entries)
      : slot_(entries), port_(port), id_(id) {}

  ContextSlot slot_;
  MessagePort& port_;
  uint16_t id_;
  bool closed_ = false;
};

}  // namespace rio::msg
