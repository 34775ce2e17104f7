/// @file
/// Large data: what the caller keeps while the cards move it between his memory and the peer's.
/// See docs/decisions/0015-large-data.md.
///
/// Thread rule: the port's thread. Nothing here is allocated; an object is the library's from
/// Context::send_large() or receive_large() on until `done` is set, and may not move meanwhile.
#pragma once

#include <cstdint>

#include "lib/msg/control.hpp"
#include "lib/msg/delivery.hpp"
#include "lib/msg/grant.hpp"
#include "lib/msg/queue_assigner.hpp"
#include "pmd/mem/cut.hpp"
#include "pmd/mem/registration.hpp"

namespace rio::msg {

class Context;

/// What both directions have in common. The first lines are the caller's to read.
struct Transfer {
  bool done = false;       ///< the memory is the caller's again: nothing reads or writes it
  int status = 0;          ///< when done: 0 or -errno
  uint64_t len_bytes = 0;  ///< when done with 0 or -EMSGSIZE: how many were moved
  void* user = nullptr;    ///< the caller's

  // The library's.
  Context* context = nullptr;
  Link* link = nullptr;
  uint32_t session = 0;  ///< of the link
  uint32_t id = 0;       ///< of the transfer, in that session and direction
  uint8_t* va = nullptr;
  uint64_t rest_bytes = 0;  ///< behind the edge, as they will be moved
  pmd::mem::Cut cut;
  const pmd::mem::Region* region = nullptr;  ///< null: not registered, bounced
  bool cancelled = false;
};

/// Bytes on their way out; -ECANCELED, -ECONNREFUSED (the receiver does not want it), -ECONNRESET
/// (the session is over), -EIO (kAttemptsMax attempts failed). The bytes may not change until done.
struct SendTransfer : Transfer {
  Links<SendTransfer> links;
  SendGrant grant;
  uint64_t match_bits = 0;
  uint32_t edge_bytes = 0;
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
  uint64_t true_bytes = 0;  ///< that the sender has, edge included
  uint32_t edge_bytes = 0;  ///< of them, that came with the request
  bool held = false;        ///< place is ours
  bool broken = false;      ///< an entry of this attempt failed: CLOSED will come
};

/// A request to send that has arrived, and was not answered; the library's, by take_request().
struct Request {
  uint64_t match_bits;
  uint64_t len_bytes;
  Origin origin;

  // The library's.
  RequestBody body;
  Links<Request> links;
};

}  // namespace rio::msg
