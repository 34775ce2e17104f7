/// @file
/// A connection between two members of one user on one machine, and the protocol that makes it.
///
/// A UNIX socket of packets. A member that wants to send calls: it sends kCall with its half of the
/// shared memory and an eventfd, gets kAnswer with the same, and sends kReady. After that the
/// socket is silent; when it closes, the other side is gone. A member that breaks these rules is
/// not connected.
///
/// Behind the half and the eventfd go the descriptors of memory that the other side may map for
/// reading, as many as the greeting has windows.
#pragma once

#include <cstdint>

#include "base/fd.hpp"
#include "fpga/wire/half.hpp"
#include "fpga/wire/shm/partner_memory.hpp"

namespace rio::wire::shm {

inline constexpr uint32_t kMagic = 0x4D48534Du;  // "MSHM"
inline constexpr uint16_t kVersion = 7;

enum class Say : uint16_t { kCall = 1, kAnswer = 2, kReady = 3 };

struct Greeting {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Say say = Say::kCall;
  uint64_t nonce = 0;     ///< of the member; differs in each life
  uint32_t first_id = 0;  ///< its destIDs
  uint32_t ids = 0;
  uint64_t nonce_at = 0;  ///< the nonce's address in the member: tests whether it can be read
  uint64_t windows = 0;   ///< how many of `window` count
  GreetedWindow window[model::Windows::kMost] = {};
};
static_assert(sizeof(Greeting) == 168);

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
  Offer offer;           ///< of this process's memory
  PartnerMemory memory;  ///< of the partner
};

}  // namespace rio::wire::shm
