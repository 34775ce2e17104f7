/// @file
/// A send and a receive under way. The caller owns them; while they are under way they may be
/// neither moved, freed nor changed.
#pragma once

#include <cstdint>

#include "lib/msg/address.hpp"
#include "lib/tag/entry.hpp"

namespace rio::tag {

using msg::Address;
using msg::address;
using msg::context_of;
using msg::dest_id_of;
using msg::kContextBits;

enum class Stage : uint8_t {
  kIdle,     ///< the caller's
  kWaiting,  ///< receive: posted; send: not begun
  kMoving,   ///< receive: matched, not all is there; send: some parts are sent, or it was asked for
  kDone,     ///< over; is the caller's once TaggedContext::next_done() or test() gave it
};

/// Eight bytes that travel with a message besides its own, for the receive that matches.
struct Immediate {
  uint64_t value = 0;
  bool there = false;
};

/// Base of sends and receives.
struct Request {
  FifoLinks<Request> by_age = {};  // the endpoint's
  Stage stage = Stage::kIdle;
  bool is_receive = false;
  /// 0; -EMSGSIZE (the message was longer than the buffer, which is full), -ECANCELED, or why it
  /// ended: -ECONNRESET, -ECONNREFUSED, -EHOSTUNREACH, -EPROTO, -ETIMEDOUT, -ENODEV; -ENOBUFS
  /// (receive: its source has more messages on the way before it than can be remembered).
  int status = 0;
  void* user = nullptr;  ///< the caller's
};

/// Large data in flight, the endpoint's.
struct LargeSend;
struct LargeRecv;
/// A message that waits for a receive, the endpoint's.
struct Unexpected;

struct SendRequest : Request {
  uint64_t bits = 0;
  Immediate immediate;
  const uint8_t* data = nullptr;
  uint64_t length_bytes = 0;
  uint64_t sent_bytes = 0;
  Address to = 0;
  bool sync = false;  ///< done when it was matched
  /// false: where it would wait for a peer that is new it is not taken, but -EAGAIN: come again,
  /// for up to TaggedConfig::new_peer_ms. After that it waits as any other.
  bool may_wait = true;
  LargeSend* large = nullptr;
  Unexpected* kept = nullptr;  // of what goes to the same endpoint
};

struct RecvRequest : Request, Receive {
  RecvRequest() { is_receive = true; }
  uint8_t* buffer = nullptr;
  LargeRecv* large = nullptr;
  bool offered = false;  // only of those that could be
  // Of the message, once it is done without an error, or with -EMSGSIZE.
  uint64_t length_bytes = 0;  ///< true one
  uint64_t message_bits = 0;
  Immediate immediate;
  Address from = 0;
};

/// The result of a probe, and what is known of a message before it is received.
struct MessageInfo {
  Address source;
  uint64_t bits;
  uint64_t length_bytes;
  Immediate immediate = {};
};

}  // namespace rio::tag
