/// @file
/// A connection of two members.
#pragma once

#include <cstdint>

#include "base/trouble.hpp"
#include "fpga/sim/fd.hpp"
#include "fpga/sim/shm/directory.hpp"
#include "fpga/sim/shm/half.hpp"
#include "fpga/sim/shm/protocol.hpp"

namespace rio::sim::shm {

/// Made by the Exchange; when it is up, the wire has it too and uses the halves.
struct Link {
  enum State : uint8_t {
    kAccepted,  ///< it called; its kCall is to come
    kCalled,    ///< we did; its kAnswer is to come
    kAnswered,  ///< its kReady is to come
    kUp,
    kDown,
  };

  State state = kAccepted;
  bool ours = false;    ///< we called
  uint32_t wanted = 0;  ///< the destID that we called
  uint32_t first_id = 0;
  uint32_t ids = 0;
  uint64_t nonce = 0;
  int pid = 0;
  uint64_t nonce_at = 0;
  Fd socket;
  Fd process;  ///< pidfd: readable when it has died; none where the kernel does not give one
  Fd bell;     ///< rung by the other one
  Fd their_bell;
  Half mine;
  Half theirs;

  [[nodiscard]] bool covers(uint32_t id) const { return id - first_id < ids; }
  [[nodiscard]] bool overlaps(const Greeting& other) const {
    return other.first_id - first_id < ids || first_id - other.first_id < other.ids;
  }
};

/// The process at the other end.
enum class Peer : uint8_t {
  kKnown,
  kNobody,   ///< another user's, or dead
  kUnknown,  ///< this process could not find out
};

/// Finds out who is at the other end of a link's socket. The pidfd is of that process if something
/// comes by the socket later on: one that has died says nothing, whoever has its number now.
/// @param trouble what this process could not do; with kKnown it has no pidfd for that reason.
[[nodiscard]] Peer identify(Link& link, base::Trouble* trouble);

/// Whether the destIDs that a partner names are its own: it listens there. @param trouble of this
/// process.
[[nodiscard]] bool may_be(const Directory& directory, const Link& link, const Greeting& greeting,
                          base::Trouble* trouble);

/// @param memory of our half; null: no descriptors go with it. @param trouble of this process.
/// @return whether it was sent; if not, and without trouble, the partner is going.
[[nodiscard]] bool send_greeting(const Link& link, const Greeting& greeting, const Fd* memory,
                                 base::Trouble* trouble);

/// An eventfd for the partner to ring. @return what this process could not do.
[[nodiscard]] base::Trouble make_bell(Fd* out);

/// End a connection, also if a child that was forked has the socket too.
void hang_up(const Fd& socket);

}  // namespace rio::sim::shm
