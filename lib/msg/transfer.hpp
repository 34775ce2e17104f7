/// @file
/// Large data: what the caller keeps while the cards move it between its memory and the peer's.
/// See docs/decisions/0015-large-data.md.
///
/// Thread rule: the port's thread. Nothing here is allocated; an object is the library's from
/// MessageContext::send_large() or receive_large() on until `done` is set, and may not move
/// meanwhile.
#pragma once

#include <cstdint>

#include "lib/msg/control.hpp"
#include "lib/msg/delivery.hpp"
#include "lib/msg/grant.hpp"
#include "lib/msg/queue_assigner.hpp"
#include "pmd/mem/cut.hpp"
#include "pmd/mem/registration.hpp"

namespace rio::msg {

struct ContextSlot;

/// StopCause::reason of large data.
struct StopReason {
  static constexpr uint8_t kCancelled = 1;  ///< the user gave up
  static constexpr uint8_t kRefused = 2;    ///< the receiver does not want it
  static constexpr uint8_t kEnough = 3;     ///< the receiver has all that it has room for
  static constexpr uint8_t kFailed = 4;     ///< the card could not do it
};

/// Common to both directions. The first lines are the caller's to read.
struct Transfer {
  bool done = false;       ///< the memory is the caller's again: nothing reads or writes it
  int status = 0;          ///< when done: 0 or -errno
  uint64_t len_bytes = 0;  ///< when done with 0 or -EMSGSIZE: how many the receiver has
  void* user = nullptr;    ///< the caller's

  // The library's.
  ContextSlot* context = nullptr;
  Link* link = nullptr;
  uint32_t id = 0;  ///< counts up in the session and direction
  uint8_t edge_bytes = 0;
  bool dead = false;        ///< the session is over, and the link does not know it any more
  bool working = false;     ///< progress looks at it
  uint8_t* rest = nullptr;  ///< what is behind the edge
  uint64_t rest_bytes = 0;
  uint64_t arrived_bytes = 0;                ///< of rest, with attempts that did not end well
  const pmd::mem::Region* region = nullptr;  ///< null: not registered, bounced
  pmd::mem::Cut cut;
};

/// Bytes on their way out; -ECANCELED, -ECONNREFUSED (the receiver does not want it), -ECONNRESET
/// (the session is over), -EIO (kFruitlessMax attempts in a row failed). The bytes may not change
/// until done.
struct SendTransfer : Transfer {
  Links<SendTransfer> links;
  SendGrant grant;
  uint64_t granted_bytes = 0;  ///< of the rest: what the receiver has room for
  bool settled = false;        ///< that has its word
  uint32_t unsent = 0;         ///< messages that the card gave back, since its ring was stopped
  uint32_t unsent_from = 0;    ///< the first of them, where there are any
};

/// Bytes on their way in. -EMSGSIZE: there were more than capacity, which were left out;
/// -ECANCELED, also where the sender has cancelled; -ECONNRESET, -EIO.
struct RecvTransfer : Transfer {
  struct Waiter : QueueWaiter {
    RecvTransfer* transfer = nullptr;
  };

  Links<RecvTransfer> links;
  Waiter waiter;
  RecvGrant grant;
  QueuePlace place;
  uint64_t true_bytes = 0;   ///< that the sender has
  bool held = false;         ///< place is ours
  bool quarantined = false;  ///< its mailbox is, until CLOSED
  bool granted = false;      ///< this attempt's GRANT is sent
  bool say_abort = false;
  bool say_kept = false;  ///< EXTEND is owed, for an offer that was accepted
  bool broken = false;    ///< an entry of this attempt failed: CLOSED will come
  uint8_t stuck = 0;      ///< queues that the card did not stop, a bit each
};

/// A request to send that has arrived and was not answered; the library's, by take_request().
struct Request {
  Header header;     // the two lie in the inbox like a message
  RequestBody body;  ///< match_bits, len_bytes
  Origin origin;
  Links<Request> links;
  int gone;  ///< not 0: no longer to be had, and why; what it is received with
  // Where it accepts an offer.
  bool accepted = false;     ///< place is its own, nothing is programmed
  bool parked = false;       ///< grant is told that it is to be asked for again
  bool quarantined = false;  ///< place's mailbox is, until CLOSED
  bool refused = false;      ///< by the user: it is the library's until CLOSED
  QueuePlace place = {};
  RecvGrant grant = {};
  pmd::mem::Cut cut = {};
  uint32_t window = 0;
  const void* buffer = nullptr;  ///< that was offered
};
static_assert(offsetof(Request, body) == sizeof(Header));

}  // namespace rio::msg
