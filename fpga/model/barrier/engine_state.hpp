/// @file
/// The state of an engine's barriers and groups. Private to engine.cc.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "fpga/model/barrier/engine.hpp"

namespace rio::model::barrier {

inline constexpr uint32_t kPlaceBits = 6;
static_assert(kPlaces <= 1u << kPlaceBits);

[[nodiscard]] constexpr Place place_of(uint32_t tag) {
  return tag & ((1u << kPlaceBits) - 1);
}

/// Calls `each(place)` for all bits of a mask.
template <class Each>
void for_each_place(uint64_t mask, const Each& each) {
  for (; mask != 0; mask &= mask - 1) {
    each(static_cast<Place>(std::countr_zero(mask)));
  }
}

/// The part of the state of a barrier that is cleared for the next one.
struct BarrierProgress {
  enum class State : uint8_t {
    kRunning,
    kHolding,     ///< complete, but a copy of a notification may still be on its way
    kCancelling,  ///< it has failed and completed; its peers are being told
    kRetired,
  };

  uint64_t got = 0;         // of plan.await
  uint64_t sent = 0;        // of plan.send; kCancelling: cancellations, by peer
  uint64_t done = 0;        // of `sent`: need no further answer
  uint64_t retrying = 0;    // of `sent`: answered RETRY, and sent again at due_ns
  uint64_t pledged = 0;     // of `sent`: as pledges, which were not refused
  uint64_t pledged_to = 0;  // of `got`: pledges
  std::array<uint8_t, kPlaces> resends{};
  std::array<uint8_t, kPlaces> delays{};  // RETRY answers in a row, up to kRetryShiftMax
  uint64_t hold_ns = 0;
  uint32_t resent = 0;
  uint32_t retries = 0;
  State state = State::kRunning;
};

struct BarrierEngine::Barrier : BarrierProgress {
  Plan plan;
  std::array<uint64_t, kPlaces> due_ns{};  // of `sent` without `done`: time-out or next retry
  uint32_t group = 0;
  uint32_t epoch = 0;
  uint32_t cookie = 0;
  uint32_t index = 0;
  uint32_t serial = 0;  // in tags; distinguishes answers to this barrier from those to earlier ones

  [[nodiscard]] bool is_active() const {
    return state == State::kRunning || state == State::kHolding;
  }
};

/// State that outlives the barriers of a group.
struct BarrierEngine::Group {
  bool ran = false;   // whether `last` is known
  uint32_t last = 0;  // epoch of the last barrier that ended
  /// Whether barrier `last` has passed with the loaded plan. So all peers have loaded theirs, and
  /// no notification of the next barrier is refused, here or there.
  bool passed = false;
  LoadedPlan loaded;  // its notifications need no room before their descriptor
};

}  // namespace rio::model::barrier
