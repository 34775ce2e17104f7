/// @file
/// Waiting for what other threads and processes do.
#pragma once

#include <chrono>

namespace rio::test {

inline constexpr auto kPatience = std::chrono::seconds(30);

/// Polls until `done()` says so. @return false: not within reason.
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
