/// @file
/// Start a thread of the library's own in a program that belongs to its user.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace rio::base {

/// Start a thread that takes no signals: those are for the program's own threads. The caller's
/// signal mask is the same afterwards, whether or not the thread could be started. Any thread,
/// control path only.
/// @param name up to 15 characters, as debuggers and /proc show it.
/// @param body runs in the new thread; must not throw.
/// @param out the running thread; set only on success.
/// @return 0; -EAGAIN: no more threads (ulimit -u, pids.max of the cgroup); -ENOMEM.
[[nodiscard]] int start_thread(const char* name, std::function<void(std::stop_token)> body,
                               std::jthread* out);

}  // namespace rio::base
