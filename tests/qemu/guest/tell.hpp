/// @file
/// Reports of the guest's programs to the host, and their patience.
#pragma once

#include <chrono>
#include <cstdint>

namespace rio::guest {

/// Longest wait for anything that must happen. A busy host is slow.
inline constexpr std::chrono::seconds kPatience{30};

/// Report an error. @return 1, for main().
[[gnu::format(printf, 1, 2)]] int fail(const char* format, ...);

/// Report a count to the host; counts with one key add up. See ../README.md.
void fact(const char* key, uint64_t number);

/// Ask the host to do something to the cards: "lose-state", "vanish".
void ask_host(const char* what);

/// Call `done` until it returns true. @return false: it did not within kPatience.
template <class Done>
[[nodiscard]] bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
  }
  return true;
}

}  // namespace rio::guest
