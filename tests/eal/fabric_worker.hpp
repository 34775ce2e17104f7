/// @file
/// A process of the test of cards in several DPDK processes: what it does when it is told so.
#pragma once

#include <string>

namespace rio::test {

/// Says "destid N", then obeys until "stop" or the end of the input. @param device name of the raw
/// device; its queue pair 0 is used.
/// "exchange DESTID": send one message of each length, 1 to 4096, there, and get as many, whose
/// bytes are those that the same command sends. Answer "exchanged", or what went wrong.
/// "stream DESTID": send until one fails; "streaming" after a hundred, then "failed".
/// "sink": take what comes until "stop"; "sinking" after a hundred.
/// "set_dest_id DESTID": of queue pair 0; "set" and the result. "configure DESTID": stop the device
/// and configure it; "configured" and the result; no messages afterwards.
/// @return exit code.
int run_fabric_worker(const std::string& device);

}  // namespace rio::test
