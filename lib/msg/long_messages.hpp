/// @file
/// Messages of any size on a context. One longer than a message of the card goes in several parts.
/// If longer than Profile::eager_bytes, or if credit for the parts is missing, it is large data:
/// the receiver sees source and length first, then gives a buffer or refuses. See
/// docs/decisions/0018-messages-of-every-size.md.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "base/slab.hpp"
#include "lib/msg/long_arrivals.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/parts_out.hpp"

namespace rio::msg {

/// A send or a receive under way. LongMessages owns it until next_done() or test() hands it to the
/// caller, which returns it with free().
struct LongRequest {
  base::FifoLinks<LongRequest> links{};
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
  bool begun = false;  ///< its first part or its request was sent
  bool asked = false;
  SendTransfer transfer;
};

struct LongReceive : LongRequest {
  LongReceive() { is_receive = true; }
  RecvTransfer transfer;
};

/// Used only on the port's thread. The context outlives it.
class LongMessages {
 public:
  explicit LongMessages(MessageContext& context);
  ~LongMessages() { static_cast<void>(close()); }
  /// Cancel all messages under way and wait up to one second for them to end. No other function may
  /// be called afterwards. Take or refuse all shown arrivals before. @return false: some have not
  /// ended; close the context, and keep it as long as the port.
  [[nodiscard]] bool close();
  LongMessages(const LongMessages&) = delete;
  LongMessages& operator=(const LongMessages&) = delete;

  /// Accept long messages up to this length, and refuse longer ones. 0, the initial setting,
  /// refuses all. @return 0, -ENOMEM.
  [[nodiscard]] int accept(uint64_t length_bytes_max) { return arrivals_.accept(length_bytes_max); }

  /// The route to a peer's context. Do not use it while has_to_send(). @return null: no such
  /// address, or no memory.
  [[nodiscard]] const Route* route(uint32_t dest_id, uint32_t context);
  /// Try to send what is queued for a context. @return whether something is still queued, which
  /// must go first.
  [[nodiscard]] bool has_to_send(uint32_t dest_id, uint32_t context);
  /// Send a message. Messages to one context keep their order. @param data must not change while
  /// the send is under way. @return 1: sent, the bytes were copied; 0: under way as *out; -EINVAL
  /// (address, length), -ENOMEM, or an error of MessagePort::send(): nothing has happened.
  [[nodiscard]] int send(uint32_t dest_id, uint32_t context, const void* data,
                         uint64_t length_bytes, void* user, LongSend** out);

  /// Hot. Whether there is a message to receive: a long one in shown(), or else a short one at the
  /// head of the inbox.
  [[nodiscard]] bool look() { return arrivals_.look(); }
  /// After look(). The next long message, which the caller has to receive() or refuse(); null: the
  /// inbox has a short one.
  [[nodiscard]] LongArrival* shown() { return arrivals_.shown(); }
  /// Receive a long message; this frees the arrival. @param buffer belongs to the library while the
  /// receive is under way. @param capacity bytes beyond it are discarded. @return 1: done, *status
  /// is as LongRequest::status; 0: under way as *out; -ENOMEM: nothing has happened.
  [[nodiscard]] int receive(LongArrival& arrival, void* buffer, uint64_t capacity, void* user,
                            int* status, LongReceive** out);
  /// Refuse a long message; this frees the arrival. A sender that waits for the end of its send
  /// gets -ECONNREFUSED.
  void refuse(LongArrival& arrival) { arrivals_.refuse(arrival); }

  /// Cancel a send or a receive. @return 0: it will be done, with -ECANCELED or an earlier result,
  /// once nothing accesses its memory any more; -EALREADY: too late, it ends by itself; -ENOENT: it
  /// is done already.
  [[nodiscard]] int cancel(LongRequest& request);

  /// Whether attend() may have something to do.
  [[nodiscard]] bool busy() const { return under_way_ != 0 || arrivals_.busy(); }
  /// Send queued messages and collect finished ones. Called after MessagePort::progress().
  void attend();
  [[nodiscard]] bool has_done() const { return !done_.is_empty(); }
  /// The oldest finished request, which then belongs to the caller. @return null: none is finished.
  [[nodiscard]] LongRequest* next_done();
  /// Whether a request is done. If so, it belongs to the caller.
  [[nodiscard]] bool test(LongRequest& request);
  void free(LongRequest& request);

 private:
  /// A context of a peer that messages were sent to.
  struct Peer {
    explicit Peer(MessagePort& port) : parts(port) {}

    Route route;
    uint32_t dest_id = 0;
    uint32_t context = 0;
    uint32_t session = 0;  // Link::session that the queued messages belong to
    bool listed = false;   // is in senders_
    base::Fifo<LongRequest, &LongRequest::links> queue;
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
  std::vector<Peer*> senders_;  // peers with queued messages
  base::Fifo<LongRequest, &LongRequest::links> done_;
  base::Slab<LongSend> sends_;
  base::Slab<LongReceive> receives_;
};

}  // namespace rio::msg
