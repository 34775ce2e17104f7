/// @file
/// The state that an engine keeps for one context of a peer.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/msg/delivery.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/transfer.hpp"
#include "lib/tag/parts.hpp"
#include "lib/tag/parts_out.hpp"
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
  bool crowded = false;                   // of TaggedContext::crowd_
  uint64_t looked_at = 0;                 // of crowd_: receives posted when it was looked at last

  Incoming incoming;

  [[nodiscard]] bool has_to_send() const { return queue.first() != nullptr; }
};

}  // namespace rio::tag
