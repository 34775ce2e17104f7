/// @file
/// A connection of two members.
#pragma once

#include <cstdint>

#include "fpga/sim/fd.hpp"
#include "fpga/sim/shm/half.hpp"

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
};

}  // namespace rio::sim::shm
