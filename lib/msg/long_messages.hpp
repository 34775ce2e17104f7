/// @file
/// Messages of any size on a context. One longer than a message of the card goes in several parts.
/// From Profile::eager_bytes on, or if credit for the parts is missing, it is sent as large data:
/// the receiver sees source and length first, then gives a buffer or refuses. See
/// docs/decisions/0018-messages-of-every-size.md.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "lib/msg/long_arrivals.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/parts_out.hpp"

namespace rio::msg {

/// A send or a receive under way. LongMessages owns it until next_done() or test() hands it to the
/// caller, which returns it with free().
struct LongRequest {
  Links<LongRequest> links;
  bool is_receive = false;
  bool done = false;
  /// Valid when done: 0; -EMSGSIZE (receive: the message was longer than the buffer, which is
  /// full); -ECANCELED; -ECONNREFUSED (send: the receiver refused it); or another -errno.
  int status = 0;
  uint64_t length_bytes = 0;  ///< length of the message
  uint32_t dest_id = 0;       ///< the peer's destID
  uint32_t context = 0;       ///< the peer's context
  void* user = nullptr;       ///< for the caller
};

struct LongSend : LongRequest {
  const uint8_t* data = nullptr;
  uint64_t sent_bytes = 0;
  bool begun = false;  ///< its first part is sent, or it was asked for
  bool asked = false;
  SendTransfer transfer;
};

struct LongReceive : LongRequest {
  LongReceive() { is_receive = true; }
  RecvTransfer transfer;
};

/// The port's thread. The context outlives it.
class LongMessages {
 public:
  explicit LongMessages(MessageContext& context);
  ~LongMessages() { static_cast<void>(close()); }
  /// Nothing is called afterwards. Messages under way are cancelled and waited for, for up to a
  /// second. Arrivals that were shown are taken or refused before. @return false: some do not end;
  /// the context is to be closed, and kept as long as the port.
  [[nodiscard]] bool close();
  LongMessages(const LongMessages&) = delete;
  LongMessages& operator=(const LongMessages&) = delete;

  /// From now on long messages are shown, up to that length; others are refused. 0: all are, as at
  /// first. @return 0, -ENOMEM.
  [[nodiscard]] int accept(uint64_t length_bytes_max) { return arrivals_.accept(length_bytes_max); }

  /// The way to a peer's context. Not while has_to_send(). @return null: there is no such address,
  /// or no memory.
  [[nodiscard]] const Route* route(uint32_t dest_id, uint32_t context);
  /// Whether something waits that is to go there before anything else. Tries to send it.
  [[nodiscard]] bool has_to_send(uint32_t dest_id, uint32_t context);
  /// Send. To one context nothing overtakes. @param data stays as it is while the send is under
  /// way. @return 1: it has gone, the bytes were copied; 0: it is under way as *out; or as
  /// MessagePort::send(), -EINVAL (address, length), -ENOMEM: nothing has happened.
  [[nodiscard]] int send(uint32_t dest_id, uint32_t context, const void* data,
                         uint64_t length_bytes, void* user, LongSend** out);

  /// Hot. Whether there is something to receive: a long message as shown(), or a short one as the
  /// oldest of the inbox.
  [[nodiscard]] bool look() { return arrivals_.look(); }
  /// After look(). The long message that is next, now the caller's, to be taken or refused; null:
  /// the inbox has a short one.
  [[nodiscard]] LongArrival* shown() { return arrivals_.shown(); }
  /// Have it. It is gone afterwards. @param buffer the library's while this is under way; what is
  /// beyond capacity is left out. @return 1: *status is set, as LongRequest's; 0: it is under way
  /// as *out; -ENOMEM: nothing has happened.
  [[nodiscard]] int receive(LongArrival& arrival, void* buffer, uint64_t capacity, void* user,
                            int* status, LongReceive** out);
  /// Not wanted. It is gone afterwards; a sender that waits for its end hears -ECONNREFUSED.
  void refuse(LongArrival& arrival) { arrivals_.refuse(arrival); }

  /// @return 0: it will be done, with -ECANCELED or whatever was sooner, when nothing can land or
  /// be read any more; -EALREADY: too late, it ends by itself; -ENOENT: it is done.
  [[nodiscard]] int cancel(LongRequest& request);

  /// Whether attend() has anything to do.
  [[nodiscard]] bool busy() const { return under_way_ != 0 || arrivals_.busy(); }
  /// Send what waits, and see what has ended; after MessagePort::progress().
  void attend();
  [[nodiscard]] bool has_done() const { return !done_.empty(); }
  /// Something that is done, the earliest first. @return null: nothing is.
  [[nodiscard]] LongRequest* next_done();
  /// Whether this one is done; if so it is the caller's.
  [[nodiscard]] bool test(LongRequest& request);
  void free(LongRequest& request);

 private:
  /// A context of a peer.
  struct Peer {
    explicit Peer(MessagePort& port) : parts(port) {}

    Route route;
    uint32_t dest_id = 0;
    uint32_t context = 0;
    uint32_t session = 0;  // of the link, that what waits belongs to
    bool listed = false;   // among those that have something to send
    LinkedList<LongRequest> queue;
    PartsOut parts;
  };

  [[nodiscard]] Peer* peer(uint32_t dest_id, uint32_t context);
  [[nodiscard]] int push(Peer& peer, LongSend& send);
  [[nodiscard]] int begin(Peer& peer, LongSend& send);
  [[nodiscard]] int pump(Peer& peer);
  void enqueue(Peer& peer, LongSend& send);
  void fail_sends(Peer& peer, int error);
  void finish(LongRequest& request, int status);

  MessageContext& context_;
  LongArrivals arrivals_;
  MessagePort& port_;
  uint64_t border_bytes_;
  uint32_t under_way_ = 0;  // sends and receives
  uint64_t sessions_ended_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> senders_;  // that have something to send
  LinkedList<LongRequest> done_;
  base::Slab<LongSend> sends_;
  base::Slab<LongReceive> receives_;
};

}  // namespace rio::msg
