/// @file
/// The contexts of peers that an engine has had to do with, and its state for each.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lib/msg/delivery.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/transfer.hpp"
#include "lib/tag/parts.hpp"
#include "lib/tag/request.hpp"

namespace rio::tag {

/// A part of an unexpected message, in its buffer.
struct Part {
  Part* next = nullptr;
  msg::Delivery delivery = {};
  uint32_t skip_bytes = 0;  // headers before the user's bytes
};

/// A message that no receive matched yet.
struct Unexpected : Message {
  Immediate immediate = {};
  Part* first = nullptr;
  Part* last = nullptr;
  msg::Request* request = nullptr;  // of what was only asked for: no parts
  // Of a message to this endpoint itself: the bytes, or the send that still has them. No parts.
  std::unique_ptr<uint8_t[]> copy;
  SendRequest* sender = nullptr;
  bool whole = false;  // all parts are there
  int status = 0;      // why the rest will not come
};

/// The arrival of a message in several parts.
struct Incoming : Assembly {
  RecvRequest* to = nullptr;   // matched: where it goes
  Unexpected* kept = nullptr;  // not matched yet; both null: too long, so its parts are dropped
};

struct LargeSend : msg::SendTransfer {
  SendRequest* request = nullptr;
};
struct LargeRecv : msg::RecvTransfer {
  RecvRequest* request = nullptr;
};

struct Peer {
  explicit Peer(msg::MessagePort& port) : parts(port) {}

  Address address = 0;
  msg::Route route;       // of kData; only the link is set until something is sent
  uint32_t session = 0;   // of the link, that all below belongs to
  bool used = false;      // something was sent in it
  int error = 0;          // what the next send has to hear
  uint64_t asked_ns = 0;  // since when it could have let us in; 0: not asked in this session
  bool listed = false;    // among those that have something to send

  Fifo<Request, &Request::by_age> queue;  // not sent, or not all of it
  PartsOut parts;                         // what is sent in several
  bool crowded = false;                   // of LargeMoves::crowd_
  uint64_t looked_at = 0;                 // of crowd_: receives posted when it was looked at last

  Incoming incoming;

  [[nodiscard]] bool has_to_send() const { return queue.first() != nullptr; }
};

/// Peers by address, and the session of each link that the endpoint's state belongs to. One thread.
class Peers {
 public:
  /// @param context number of the endpoint's own.
  Peers(msg::MessagePort& port, uint32_t context) : port_(port), context_(context) {}

  [[nodiscard]] Address self() const { return address(port_.dest_id(), context_); }
  /// A peer to send to. Made if need be. @return null: there is no such address, or no memory.
  [[nodiscard]] Peer* get(Address address);
  /// The sender of a message. Made if need be.
  [[nodiscard]] Peer& of(const msg::Origin& origin);
  /// @return null: the context has had nothing to do with it.
  [[nodiscard]] Peer* known(Address address) const;
  /// @return null: the endpoint's own address, or get() returns null.
  [[nodiscard]] const msg::Link* link_of(Address address);

  /// Call `visit(Peer&)` for each peer, or for each of a link.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [address, peer] : peers_) {
      visit(*peer);
    }
  }
  template <class Visit>
  void for_each_of(const msg::Link& link, Visit&& visit) {
    for (auto& [address, peer] : peers_) {
      if (peer->route.link == &link) {
        visit(*peer);
      }
    }
  }

  /// The session of a link that the endpoint knows to have begun.
  [[nodiscard]] uint32_t& session_of(const msg::Link& link);

 private:
  [[nodiscard]] Peer& add(Address address, const msg::Route& route);

  msg::MessagePort& port_;
  uint32_t context_;
  std::unordered_map<Address, std::unique_ptr<Peer>> peers_;
  std::vector<uint32_t> sessions_;  // by index of the link
};

}  // namespace rio::tag
