/// @file
/// Tagged messages over a context of a port, in the order that MPI demands.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/slab.hpp"
#include "lib/msg/context.hpp"
#include "lib/tag/matcher.hpp"
#include "lib/tag/peer.hpp"
#include "lib/tag/wire.hpp"

namespace rio::tag {

struct EndpointConfig {
  MatcherConfig matcher;
  /// Longer messages are moved by dedicated queues, where they are, once they are matched. So are
  /// others for which there is no credit. 0: as the port's profile says.
  uint64_t eager_bytes = 0;
  /// How long a send that may not wait is not taken by a peer that is new, in ms.
  uint32_t new_peer_ms = 1000;
  /// Makes a request that sends a message again in the next session, since the peer did not receive
  /// it; next_done() returns it. Only lost messages are then errors. Null: if a session ends after
  /// a send, the next send there fails, since that message may be lost. @param data to be copied;
  /// SendRequest::data points to the copy. @return null: no memory.
  std::function<SendRequest*(const void* data, uint64_t bytes)> send_again = nullptr;
};

struct EndpointStats {
  uint64_t unexpected = 0;  ///< messages that came before their receive
  uint64_t stalled = 0;     ///< sends that had to wait
  uint64_t offers = 0;      ///< to peers, of places for what they send next
  uint64_t large = 0;       ///< messages that were moved, or are, by dedicated queues
  uint64_t asked = 0;       ///< of sends, those that were asked for since there was no credit
  uint64_t cut_off = 0;     ///< sessions ended because the peer's messages made no sense
};

/// The port's thread. The port outlives it. Nothing happens but in its calls.
///
/// Functions that begin something return 1: it is done already, `request` is the caller's; 0: it is
/// under way, and comes back by next_done() or test(); or -errno: nothing has happened.
class Endpoint {
 public:
  /// @param context number below msg::kContexts; peers send to it.
  /// @return 0, or as Context::create(); -ENOMEM.
  [[nodiscard]] static int create(msg::Port& port, uint16_t context, const EndpointConfig& config,
                                  std::unique_ptr<Endpoint>* out);
  /// What is under way is done, with -ECANCELED; large data is waited for, for up to a second, and
  /// if it does not end the port has to be closed next. What has arrived and was not received is
  /// lost.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Hot. Send. To one peer nothing overtakes. @param data stays as it is while the send is under
  /// way. @return as above; -ECONNRESET and the like (what was sent to this peer earlier may be
  /// lost; the next call begins anew), -EINVAL (address, length), -ENOMEM.
  [[nodiscard]] int send(Address to, uint64_t bits, const void* data, uint64_t length_bytes,
                         SendRequest& request, Immediate immediate = {}) {
    if (send_tiny(to, bits, immediate, data, length_bytes)) [[likely]] {
      request.status = 0;
      return 1;
    }
    return send_any(to, bits, immediate, data, length_bytes, false, request);
  }
  /// The same if it can be done at once and with little: no request is needed. @return false:
  /// nothing has happened.
  [[nodiscard]] bool send_tiny(Address to, uint64_t bits, Immediate immediate, const void* data,
                               uint64_t length_bytes) {
    if (to != direct_.address || length_bytes > msg::kTinyBytesMax) [[unlikely]] {
      return false;
    }
    const auto count = static_cast<uint32_t>(length_bytes);
    return immediate.there ? port_.send_tiny(direct_.route, bits, immediate.value, data, count)
                           : port_.send_tiny(direct_.route, bits, data, count);
  }
  /// The same as send(), but it is done only when the message was matched: MPI's Ssend. It is asked
  /// for.
  [[nodiscard]] int send_sync(Address to, uint64_t bits, const void* data, uint64_t length_bytes,
                              SendRequest& request, Immediate immediate = {}) {
    return send_any(to, bits, immediate, data, length_bytes, true, request);
  }

  /// Hot. Receive. @param pattern.source of address(), or kAnySource. @param buffer the library's
  /// while the receive is under way. @return as above.
  [[nodiscard]] int receive(const Pattern& pattern, void* buffer, uint64_t capacity_bytes,
                            RecvRequest& request) {
    static_cast<Pattern&>(request) = pattern;
    request.capacity_bytes = capacity_bytes;
    request.buffer = static_cast<uint8_t*>(buffer);
    request.status = 0;
    if (Message* const message = matcher_.post(request); message != nullptr) [[unlikely]] {
      return take(static_cast<Unexpected&>(*message), request);
    }
    request.stage = Stage::kWaiting;
    if (capacity_bytes > eager_bytes_ && pattern.source != kAnySource) [[unlikely]] {
      request.offered = offer(request);
    }
    return 0;
  }

  /// Whether a receive of this pattern would take a message now. Makes progress.
  [[nodiscard]] bool probe(const Pattern& pattern, MessageInfo* info);
  /// Matched probe: the same, and the message is only for receive_claimed(). @return null: none.
  [[nodiscard]] Message* claim(const Pattern& pattern, MessageInfo* info);
  /// @param message of claim(), used up. @return as above; -ENOENT: it is not claimed.
  [[nodiscard]] int receive_claimed(Message& message, void* buffer, uint64_t capacity_bytes,
                                    RecvRequest& request);

  /// @return 0: it comes back, with -ECANCELED, when nothing can land in its buffer or be read any
  /// more; large data may be done before that, and comes back with 0 then. -EALREADY: too late, it
  /// was matched, or sent in part: it ends by itself, as if nothing had been said. -ENOENT: it is
  /// not under way.
  [[nodiscard]] int cancel(RecvRequest& request);
  [[nodiscard]] int cancel(SendRequest& request);

  /// Hot. Let the library work. Bounded.
  void progress() {
    port_.progress();
    attend();
  }
  /// Hot. The part of progress() that is this endpoint's own: for who has several on one port, and
  /// calls Port::progress() once for all.
  void attend() {
    if (port_.sessions_ended() != sessions_ended_ || port_.error() != 0) [[unlikely]] {
      look_at_sessions();
    }
    if (const uint32_t count = context_->inbox().count(); count != 0) {
      if (count != 1 || !arrive_alone()) {
        drain();
      }
    }
    if (cold_ != 0) [[unlikely]] {
      finish_large();
    }
    if (!senders_.empty()) [[unlikely]] {
      send_waiting();
    }
  }
  /// Hot. Something that is done, the earliest first; it is the caller's. @return null: nothing is.
  [[nodiscard]] Request* next_done() {
    Request* const request = done_.pop();
    if (request != nullptr) {
      request->stage = Stage::kIdle;
    }
    return request;
  }
  /// Whether next_done() has something.
  [[nodiscard]] bool has_done() const { return done_.first() != nullptr; }
  /// Whether this one is done; if so it is the caller's.
  [[nodiscard]] bool test(Request& request) {
    if (request.stage != Stage::kDone) {
      return false;
    }
    done_.remove(request);
    request.stage = Stage::kIdle;
    return true;
  }
  /// After Port::meet_instance(): another process has this destID now. End operations with the
  /// former one, drop errors not yet reported, and give its unreceived messages the source
  /// kFormerSource.
  void forget_former(uint32_t dest_id);

  /// Make progress until all sends have gone and arrived, but for those that were asked for, or
  /// are to oneself, and that nobody has matched yet. @return 0, -ETIMEDOUT.
  [[nodiscard]] int flush(uint32_t timeout_ms);

  /// How often a context of a peer had closed or did not exist, modulo 2^8.
  [[nodiscard]] uint8_t refusals(Address to) {
    const msg::Link* const link = to == direct_.address ? direct_.route.link : link_of(to);
    return link != nullptr ? link->refusals[context_of(to)] : 0;
  }
  /// Whether there are messages that no receive has matched.
  [[nodiscard]] bool has_unexpected() { return !matcher_.messages().empty(); }
  /// Drop the whole ones of these messages: for an endpoint that posts its receives before its
  /// messages can arrive.
  void drop_unexpected();

  [[nodiscard]] Address self() const { return address(port_.dest_id(), context_->id()); }
  [[nodiscard]] msg::Port& port() { return port_; }
  [[nodiscard]] const EndpointStats& stats() const { return stats_; }

 private:
  using Requests = Fifo<Request, &Request::by_age>;
  // Whom the next short send may go to without a look at anything else.
  struct Direct {
    Address address;
    msg::Route route;
  };

  [[nodiscard]] static Direct nobody();

  Endpoint(msg::Port& port, uint64_t eager_bytes, const EndpointConfig& config)
      : port_(port),
        eager_bytes_(eager_bytes),
        new_peer_ms_(config.new_peer_ms),
        send_again_(config.send_again) {}

  // endpoint.cc
  void finish(Request& request, int status) { finish(request, status, &done_); }
  static void finish(Request& request, int status, Requests* done) {
    request.status = status;
    request.stage = Stage::kDone;
    done->append(request);
  }
  [[nodiscard]] Peer* peer(Address address);
  [[nodiscard]] const msg::Link* link_of(Address address);
  [[nodiscard]] int take(Unexpected& message, RecvRequest& request);
  void drop(Unexpected& message);
  [[nodiscard]] static int truncation(const RecvRequest& request) {
    return request.length_bytes > request.capacity_bytes ? -EMSGSIZE : 0;
  }

  /// Hot. Bytes of the message that begin at `at`, as far as the buffer goes.
  static void place(const RecvRequest& request, uint64_t at, const uint8_t* bytes, uint64_t count) {
    if (at >= request.capacity_bytes) [[unlikely]] {
      return;
    }
    const uint64_t fits = std::min(count, request.capacity_bytes - at);
    if (fits <= msg::kTinyBytesMax) {
      msg::copy_tiny(request.buffer + at, bytes, fits);
    } else {
      std::memcpy(request.buffer + at, bytes, fits);
    }
  }

  // arrive.cc
  [[nodiscard]] bool arrive_alone();
  void drain();
  void arrive_run(const msg::Origin& origin);
  static void complete(RecvRequest& request, Address source, const iovec& bytes, uint32_t head,
                       Requests* done);
  [[nodiscard]] const char* arrive_data(const iovec& bytes, const msg::Origin& origin,
                                        uint32_t head);
  void arrive_other(const iovec& bytes, const msg::Origin& origin);
  [[nodiscard]] bool arrive_first(Peer& peer, const iovec& bytes, bool has_immediate);
  [[nodiscard]] bool arrive_part(Peer& peer, const iovec& bytes, msg::Kind kind);
  void end_incoming(Peer& peer);
  void drop_arrived();
  [[nodiscard]] Unexpected* keep(Address source, const FirstHeader& header, bool has_immediate,
                                 uint32_t skip_bytes);
  [[nodiscard]] bool keep_part(Unexpected& message, uint32_t skip_bytes);
  void bad(const msg::Origin& origin, const char* what);

  // send.cc
  [[nodiscard]] int send_any(Address to, uint64_t bits, Immediate immediate, const void* data,
                             uint64_t length_bytes, bool sync, SendRequest& request);
  [[nodiscard]] int send_peer(SendRequest& request);
  [[nodiscard]] int wait_for(Peer& peer, SendRequest& request);
  [[nodiscard]] bool is_new(Peer& peer) const;
  [[nodiscard]] int error_of(Peer& peer);
  [[nodiscard]] int push(Peer& peer, SendRequest& request);
  [[nodiscard]] int push_part(Peer& peer, SendRequest& request);
  [[nodiscard]] int push_first(Peer& peer, SendRequest& request);
  [[nodiscard]] int pump(Peer& peer);
  void send_waiting();
  void want(Peer& peer);

  // self.cc
  [[nodiscard]] int send_self(SendRequest& request);
  [[nodiscard]] int keep_self(SendRequest& request);
  void take_self(Unexpected& message, const RecvRequest& request);
  void end_self(Unexpected& message, int status);
  void fail_self(int error);

  // large.cc
  [[nodiscard]] int push_large(Peer& peer, SendRequest& request, bool small);
  [[nodiscard]] bool arrive_request(Peer& peer);
  [[nodiscard]] bool receive_large(msg::Request* from, RecvRequest& request);
  [[nodiscard]] bool offer(const RecvRequest& request);
  void revoke(const RecvRequest& request);
  void finish_large();
  [[nodiscard]] bool leave_large();
  [[nodiscard]] bool moves_large();
  void look_at_crowd();
  void let_in(Address source);

  // failure.cc
  [[nodiscard]] uint32_t& session_of(const msg::Link& link);
  void look_at_sessions();
  void link_ended(msg::Link& link, uint32_t session, int error);
  void disown_messages(const msg::Link& link);
  void fail_sends(Peer& peer, int error);
  [[nodiscard]] bool is_lost(const Peer& peer) const {
    return !send_again_ || (peer.route.link->lost >> context_->id() & 1) != 0;
  }
  [[nodiscard]] bool may_still_send(const Peer& peer, int error) const;
  void take_losses(msg::Link& link);
  [[nodiscard]] bool send_again(Peer& peer, const msg::Again& message);
  void fail_incoming(Peer& peer, int error);
  template <class Wanted>
  void fail_receives(Wanted&& wanted, int error);
  void fail_all(int error);

  msg::Port& port_;
  std::unique_ptr<msg::Context> context_;
  Matcher matcher_;
  Requests done_;
  Requests self_sends_;  // that no receive has matched
  Direct direct_ = nobody();
  uint32_t incoming_ = 0;  // peers with a message in several parts under way
  uint64_t sessions_ended_ = 0;
  std::vector<Peer*> senders_;  // peers that have something to send
  std::unordered_map<Address, std::unique_ptr<Peer>> peers_;
  std::vector<uint32_t> sessions_;  // of links by index, that we know to have begun
  uint64_t eager_bytes_;
  uint32_t new_peer_ms_;
  std::function<SendRequest*(const void*, uint64_t)> send_again_;
  uint32_t cold_ = 0;         // large data under way, and peers in crowd_
  std::vector<Peer*> crowd_;  // that have used up their window of requests
  base::Slab<LargeSend> large_sends_;
  base::Slab<LargeRecv> large_receives_;
  base::Slab<Part> parts_;
  base::Slab<Unexpected> unexpected_;
  EndpointStats stats_;
};

}  // namespace rio::tag
