/// @file
/// The function that a wire's thread calls when the card should be stepped.
#pragma once

#include <mutex>

#include "fpga/wire/member.hpp"

namespace rio::wire {

/// Holds that function. Any thread.
class PokeTarget {
 public:
  /// Set the function. Null: once this returns, no function is called.
  void set(Member::Poke poke, void* ctx) {
    const std::lock_guard lock(mutex_);
    poke_ = poke;
    ctx_ = ctx;
  }
  /// Call the function, if any. @return whether it wants to be called again soon.
  [[nodiscard]] bool call() {
    const std::lock_guard lock(mutex_);
    return poke_ != nullptr && poke_(ctx_);
  }

 private:
  std::mutex mutex_;
  Member::Poke poke_ = nullptr;
  void* ctx_ = nullptr;
};

}  // namespace rio::wire
