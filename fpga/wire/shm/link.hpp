/// @file
/// A connection between two members of one user on one machine, and the protocol that makes it.
///
/// A UNIX socket of packets. A member that wants to send calls: it sends kCall with its half of the
/// shared memory and an eventfd, gets kAnswer with the same, and sends kReady. After that the
/// socket is silent; when it closes, the other side is gone. A member that breaks these rules is
/// not connected.
#pragma once

#include <cstdint>

#include "base/fd.hpp"
#include "base/trouble.hpp"
#include "fpga/wire/half.hpp"
#include "fpga/wire/shm/directory.hpp"

namespace rio::wire::shm {

inline constexpr uint32_t kMagic = 0x4D48534Du;  // "MSHM"
inline constexpr uint16_t kVersion = 3;

enum class Say : uint16_t { kCall = 1, kAnswer = 2, kReady = 3 };

struct Greeting {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Say say = Say::kCall;
  uint64_t nonce = 0;     ///< of the member; differs in each life
  uint32_t first_id = 0;  ///< its destIDs
  uint32_t ids = 0;
  uint64_t nonce_at =
      0;  ///< address of the nonce in the member's process, to test whether it can be read
};
static_assert(sizeof(Greeting) == 32);

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
  bool ours = false;        ///< this side has called
  uint32_t wanted = 0;      ///< the destID that was called
  Greeting they{.ids = 0};  ///< the partner's; no destIDs before it came
  int pid = 0;
  base::Fd socket;
  base::Fd process;  ///< pidfd: readable when the process has died; empty if the kernel gives none
  Joint joint;
};

/// Identify the process at the other end of a link's socket. A later message on the socket proves
/// that the pidfd is that process's: a dead one sends nothing, even if its number is reused. @param
/// trouble failure of this process. @return false: it is of another user, or dead, or `trouble`
/// kept this process from finding out; true with `trouble`: that is why there is no pidfd.
[[nodiscard]] bool identify(Link& link, base::Trouble* trouble);

/// Whether the destIDs that a partner claims are its own: it must listen at their sockets. @param
/// trouble failure of this process.
[[nodiscard]] bool may_be(const Directory& directory, const Link& link, const Greeting& greeting,
                          base::Trouble* trouble);

/// Send a greeting. @param memory of our half; null: send no descriptors. @param trouble failure of
/// this process. @return whether it was sent; if not, and without trouble, the partner is leaving.
[[nodiscard]] bool send_greeting(const Link& link, const Greeting& greeting, const base::Fd* memory,
                                 base::Trouble* trouble);

/// End a connection, even if a forked child has the socket, too.
void hang_up(const base::Fd& socket);

}  // namespace rio::wire::shm
