#include "pmd/card/turn.hpp"

#include <chrono>
#include <thread>

namespace rio::pmd {

bool Turn::take_for_good(uint32_t timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  wanted_.store(1, std::memory_order_relaxed);
  bool mine = take_now();
  while (!mine && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();  // the thread inside may want this CPU
    mine = take_now();
  }
  wanted_.store(0, std::memory_order_relaxed);
  return mine;
}

}  // namespace rio::pmd
