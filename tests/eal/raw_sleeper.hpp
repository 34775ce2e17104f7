/// @file
/// Sleeps until a message comes, then polls: with the raw device's public functions alone.
#pragma once

#include <cstdint>
#include <string>

namespace rio::test {

/// Set up queue pair `qp` of a stopped device that hears itself, with interrupts for its shared
/// ring. `rounds` times send a message, sleep until the card wakes us, and receive it; then stop.
/// @param interrupts incremented by those that were raised. @return "", or the error.
[[nodiscard]] std::string sleep_and_receive(uint16_t dev, uint16_t qp, uint32_t rounds,
                                            uint64_t* interrupts);

}  // namespace rio::test
