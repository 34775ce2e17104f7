/// @file
/// A connection between two members.
#pragma once

#include <cstdint>

#include "base/fd.hpp"
#include "base/trouble.hpp"
#include "fpga/wire/half.hpp"
#include "fpga/wire/shm/directory.hpp"
#include "fpga/wire/shm/protocol.hpp"

namespace rio::wire::shm {

/// A link. The Exchange makes it; once it is up, the wire has it, too, and uses the halves.
struct Link {
  enum State : uint8_t {
    kAccepted,  ///< the partner has called; its kCall is next
    kCalled,    ///< we have called; its kAnswer is next
    kAnswered,  ///< we have answered; its kReady is next
    kUp,
    kDown,
  };

  State state = kAccepted;
  bool ours = false;    ///< this side has called
  uint32_t wanted = 0;  ///< the destID that was called
  uint32_t first_id = 0;
  uint32_t ids = 0;
  uint64_t nonce = 0;
  int pid = 0;
  uint64_t nonce_at = 0;
  base::Fd socket;
  base::Fd process;  ///< pidfd: readable when the process has died; empty if the kernel gives none
  base::Fd bell;     ///< the partner rings it
  base::Fd their_bell;
  Half mine;
  Half theirs;

  [[nodiscard]] bool covers(uint32_t id) const { return id - first_id < ids; }
  [[nodiscard]] bool overlaps(const Greeting& other) const {
    return other.first_id - first_id < ids || first_id - other.first_id < other.ids;
  }
};

/// Result of identify(): the process at the other end.
enum class Peer : uint8_t {
  kKnown,
  kStranger,  ///< a process of another user, or a dead one
  kUnknown,   ///< this process could not find out
};

/// Identify the process at the other end of a link's socket. A later message on the socket proves
/// that the pidfd is that process's: a dead one sends nothing, even if its number is reused. @param
/// trouble failure of this process; with kKnown it is why there is no pidfd.
[[nodiscard]] Peer identify(Link& link, base::Trouble* trouble);

/// Whether the destIDs that a partner claims are its own: it must listen at their sockets. @param
/// trouble failure of this process.
[[nodiscard]] bool may_be(const Directory& directory, const Link& link, const Greeting& greeting,
                          base::Trouble* trouble);

/// Send a greeting. @param memory of our half; null: send no descriptors. @param trouble failure of
/// this process. @return whether it was sent; if not, and without trouble, the partner is leaving.
[[nodiscard]] bool send_greeting(const Link& link, const Greeting& greeting, const base::Fd* memory,
                                 base::Trouble* trouble);

/// Make an eventfd for the partner to ring. @return a failure of this process.
[[nodiscard]] base::Trouble make_bell(base::Fd* out);

/// End a connection, even if a forked child has the socket, too.
void hang_up(const base::Fd& socket);

}  // namespace rio::wire::shm
