/// @file
/// Waits for other threads and processes.
#pragma once

#include <chrono>

namespace rio::test {

inline constexpr auto kPatience = std::chrono::seconds(30);

/// Polls until `done()` returns true. @return false: it took too long.
template <class Done>
[[nodiscard]] bool wait_until(const Done& done) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
  }
  return true;
}

}  // namespace rio::test
