/// @file
/// What the programs of the guest tell the host, and how long they wait.
#pragma once

#include <chrono>
#include <cstdint>

namespace rio::guest {

/// Longest wait for anything that must come. A busy host is slow.
inline constexpr std::chrono::seconds kPatience{30};

/// Tell what is wrong. @return 1, for main().
[[gnu::format(printf, 1, 2)]] int fail(const char* format, ...);

/// Tell the host what was counted here; numbers of one key add up. See ../README.md.
void fact(const char* key, uint64_t number);

/// Ask the host to do something to the cards: "lose-state", "vanish".
void ask_host(const char* what);

/// Call `done` until it is true. @return false: it was not within kPatience.
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
