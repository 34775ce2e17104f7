/// @file
/// A process of fabric_test, which follows commands.
#pragma once

#include <string>

namespace rio::test {

/// Prints "destid N", then follows commands until "stop" or the end of the input.
/// "exchange DESTID": sends one message of each length, 1 to 4096, there, and receives as many,
/// with the bytes that the same command sends. Answers "exchanged", or the error.
/// "stream DESTID": sends until a message fails; prints "streaming" after a hundred, then "failed".
/// "sink": receives until "stop"; prints "sinking" after a hundred.
/// "set_dest_id DESTID": of queue pair 0; prints "set" and the result.
/// "configure DESTID": stops the device and configures it; prints "configured" and the result; no
/// messages afterwards.
/// @param device name of the raw device; its queue pair 0 is used. @return exit code.
int run_fabric_worker(const std::string& device);

}  // namespace rio::test
