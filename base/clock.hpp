/// @file
/// The clock that waits and timeouts are measured with.
#pragma once

#include <cstdint>
#include <ctime>

namespace rio::base {

/// A source of time. @return nanoseconds, never backwards.
using ClockFunction = uint64_t (*)();

/// Nanoseconds of CLOCK_MONOTONIC: never backwards, common to all processes of the machine, and
/// going on while a process is stopped. Any thread.
[[nodiscard]] inline uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

namespace detail {
inline constinit ClockFunction clock_function = &monotonic_ns;
}  // namespace detail

/// Let now_ns() read another clock, in a program that runs in virtual time. Call it before the
/// program starts a thread and before it opens a card. @param clock is called by any thread. Its
/// time must pass while the program waits, or a wait never ends.
inline void set_clock(ClockFunction clock) {
  detail::clock_function = clock;
}

/// Nanoseconds: monotonic_ns(), unless the program has set another clock. Any thread.
[[nodiscard]] inline uint64_t now_ns() {
  return detail::clock_function();
}

}  // namespace rio::base
