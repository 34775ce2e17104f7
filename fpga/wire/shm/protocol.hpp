/// @file
/// How two members connect, on one machine and for one user.
///
/// A UNIX socket of packets. A member that wants to send calls: it sends kCall with its half of the
/// shared memory and an eventfd, is answered by kAnswer with the same, and sends kReady. From then
/// on nothing is said; a closed socket means that the other one has gone. A member that breaks
/// these rules is not connected to.
#pragma once

#include <cstdint>

namespace rio::wire::shm {

inline constexpr uint32_t kMagic = 0x4D48534Du;  // "MSHM"
inline constexpr uint16_t kVersion = 3;

enum class Say : uint16_t { kCall = 1, kAnswer = 2, kReady = 3 };

struct Greeting {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Say say = Say::kCall;
  uint64_t nonce = 0;     ///< of the member: another life has another one
  uint32_t first_id = 0;  ///< its destIDs
  uint32_t ids = 0;
  uint64_t nonce_at = 0;  ///< where the nonce is in the member's process: can it be read?
};
static_assert(sizeof(Greeting) == 32);

}  // namespace rio::wire::shm
