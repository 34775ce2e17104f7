/// @file
/// One user of a port, with an id and an inbox: messages to this id arrive only here.
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

/// Used only on the port's thread. The port outlives it.
class MessageContext {
 public:
  /// Create a context. If an earlier context had the same id, this first tells its peers that it
  /// has closed, so that they never confuse the two; likewise peers that have asked for it before
  /// it existed. It waits up to PortConfig::deliver_ms for peers that accept nothing, and up to one
  /// second for their answers.
  /// @param id below kContexts. @return 0, -EINVAL (id), -EBUSY (the id is in use, or a peer could
  /// not be told of the earlier context's end), -ENOMEM.
  [[nodiscard]] static int create(MessagePort& port, uint16_t id,
                                  std::unique_ptr<MessageContext>* out);
  /// Messages in the inbox are lost, and peers are told that the context is gone. All its transfers
  /// must be done; if some are not, call close() instead and keep the object as long as the port.
  ~MessageContext();
  /// Close the context like the destructor, but transfers under way may still report their end
  /// here.
  void close();
  MessageContext(const MessageContext&) = delete;
  MessageContext& operator=(const MessageContext&) = delete;

  /// For callers of send_tiny(), which does not check for ended sessions. `hear` is called, during
  /// any call on the port, when a session ends with a peer that this context has a route to. It
  /// must not call the port. The next send to that peer must be a send(), which returns the error.
  void on_session_end(std::function<void()> hear) { slot_.on_session_end = std::move(hear); }

  /// Hot. Messages that have arrived; those of one sender are in order.
  [[nodiscard]] const Inbox& inbox() const { return slot_.inbox; }
  /// Hot. Drop the oldest message. Its sender gets credits back when the whole run is dropped.
  void drop_oldest() {
    Origin origin;
    port_.buffers_.give_back(static_cast<uint8_t*>(slot_.inbox.at(0).iov_base) - kHeaderBytes);
    if (const uint32_t count = slot_.inbox.pop(&origin); count != 0) [[unlikely]] {
      port_.inflows_.return_credit(origin, id_, count);
    }
  }
  /// Hot. Drop the `n` oldest messages. @param n 1 to Inbox::run().
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
  /// Take the oldest message out of the inbox. Return it with give_back() later.
  [[nodiscard]] Delivery take_oldest();
  /// Return the buffer of a message that was taken.
  void give_back(const Delivery& delivery) {
    port_.buffers_.give_back(static_cast<uint8_t*>(delivery.bytes.iov_base) - kHeaderBytes);
    port_.inflows_.return_credit(delivery.origin, id_, 1);
  }

  /// Accept large data. Until this call, requests of peers are refused. @param all_may_ask also let
  /// in peers for which no share of buffers is left; they send short messages as requests.
  /// @return 0, -ENOMEM.
  [[nodiscard]] int accept_large(bool all_may_ask = true);
  /// Send large data: sends a request, in order with other messages on the route. @param data must
  /// not change until the transfer is done. @param len_bytes 1 to kTransferMax; 0 is allowed if
  /// `small`. @param transfer new, or done. @param small the data would fit into ordinary messages,
  /// but credit is missing. @param immediate eight bytes for the receiver; null: none. @return as
  /// MessagePort::send(), or -EINVAL (length), -ENOMEM; the transfer has begun only with 0.
  [[nodiscard]] int send_large(const Route& route, uint64_t match_bits, const void* data,
                               uint64_t len_bytes, SendTransfer& transfer, bool small = false,
                               const uint64_t* immediate = nullptr);
  /// Take the oldest item, which must be a request (Kind::kRequest), out of the inbox. Answer it
  /// with receive_large() or refuse_large() later.
  [[nodiscard]] Request* take_request();
  /// Receive the data of a request; this frees the request. Bytes beyond `capacity` are never sent.
  /// @param buffer belongs to the transfer until it is done. @param transfer new, or done.
  void receive_large(Request* request, void* buffer, uint64_t capacity, RecvTransfer& transfer) {
    port_.large_.receiver().receive(slot_, request, buffer, capacity, transfer);
  }
  /// Postpone the answer to a request. Call this before the next progress() if the request is not
  /// answered at once, because it may hold a dedicated queue that was offered.
  void keep_large(Request* request) { port_.large_.receiver().requests().keep(*request); }
  /// Offer a dedicated queue for the peer's next message, which then needs no grant if it is large
  /// and matches. Its request arrives as usual; if it is not received at once into this buffer, the
  /// ordinary grant follows. @param ignore_bits bits of match_bits to ignore. @param buffer nothing
  /// is written there before receive_large(). @return 0; -EAGAIN: no offer is possible or
  /// worthwhile now.
  [[nodiscard]] int offer_large(const Route& route, uint64_t match_bits, uint64_t ignore_bits,
                                void* buffer, uint64_t capacity);
  /// Revoke the open offer to a peer, if any. The peer may have accepted it already.
  void revoke_offer(const Route& route) {
    if (port_.large_.started()) {
      port_.large_.receiver().offers().revoke(*route.link, id_);
    }
  }
  /// Whether the peer may send another request here before an earlier one is answered.
  [[nodiscard]] bool requests_left(const Origin& origin) const;
  /// Let the peer send some requests beyond its window. @return false: the port has too many
  /// unanswered requests.
  [[nodiscard]] bool lend_requests(const Origin& origin) {
    return origin.session != origin.link->session || port_.inflows_.lend_records(*origin.link, id_);
  }
  /// Refuse a request; this frees it. The sender gets -ECONNREFUSED.
  void refuse_large(Request* request) { port_.large_.receiver().requests().refuse(request); }
  /// Cancel a transfer. It is done, with -ECANCELED or an earlier result, once nothing accesses its
  /// memory any more.
  void cancel(SendTransfer& transfer) { port_.large_.sender().cancel(transfer); }
  void cancel(RecvTransfer& transfer) { port_.large_.receiver().cancel(transfer); }
  /// Transfers that became done in MessagePort::progress(), each returned once. Free a transfer
  /// only after it was returned here. @return null: no more.
  [[nodiscard]] SendTransfer* next_sent() { return slot_.sent.pop(); }
  [[nodiscard]] RecvTransfer* next_received() { return slot_.received.pop(); }

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
