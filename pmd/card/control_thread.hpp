/// @file
/// Run something where EAL runs its control threads.
#pragma once

#include <functional>

namespace rio::pmd {

/// Call `work` in a new thread on the CPUs that EAL keeps for control threads, so that threads
/// which it starts do not inherit the one CPU of an lcore. Waits for it.
/// @return what `work` returned, or -EAGAIN (no thread), -ENOMEM; logged.
[[nodiscard]] int run_in_control_thread(const std::function<int()>& work);

}  // namespace rio::pmd
