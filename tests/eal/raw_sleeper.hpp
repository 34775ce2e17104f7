/// @file
/// Sleep until a message comes, then poll: with the raw device's public functions alone.
#pragma once

#include <cstdint>
#include <string>

namespace rio::test {

/// Set up queue pair `qp` of a stopped device that hears itself, with interrupts for its shared
/// ring; `rounds` times send a message, sleep until the card wakes us, and receive it; stop.
/// @param interrupts gets those that were raised added. @return "", or what went wrong.
[[nodiscard]] std::string sleep_and_receive(uint16_t dev, uint16_t qp, uint32_t rounds,
                                            uint64_t* interrupts);

}  // namespace rio::test
