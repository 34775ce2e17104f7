/// @file
/// Runs a function on the CPUs of EAL's control threads.
#pragma once

#include <functional>

namespace rio::pmd {

/// Run `work` in a new thread on the CPUs that EAL keeps for control threads, so that threads
/// started by it do not inherit the single CPU of an lcore. Waits for it. @return work's result, or
/// -EAGAIN (no thread), -ENOMEM; logged.
[[nodiscard]] int run_in_control_thread(const std::function<int()>& work);

}  // namespace rio::pmd
