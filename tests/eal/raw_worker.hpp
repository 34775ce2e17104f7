/// @file
/// A process of raw_multi_test: reads commands from its standard input, one per line, and answers
/// on its standard output.
#pragma once

#include <cstdint>
#include <string>

namespace rio::test {

/// Runs until "stop" or the end of the input. @param device name of the raw device, a card that
/// hears itself. @param qp queue pair to claim; messages go to its own destID.
/// Commands: "count" (messages and errors so far), "plug NAME", "unplug NAME", "devices",
/// "selftest", "reset", "stop".
/// @return exit code.
int run_worker(const std::string& device, uint16_t qp);

}  // namespace rio::test
