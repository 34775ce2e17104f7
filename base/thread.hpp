/// @file
/// Start the library's own threads in a program that belongs to its user.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace rio::base {

/// Start a thread that takes no signals, because those are for the program's own threads. The
/// caller's signal mask is unchanged afterwards, whether or not the thread could be started. Any
/// thread, control path only.
/// @param name up to 15 characters, as debuggers and /proc show it.
/// @param body runs in the new thread; must not throw.
/// @param out the running thread; set only on success.
/// @return 0; -EAGAIN: no more threads (ulimit -u, pids.max of the cgroup), or no memory for a
/// stack; -ENOMEM; -EPERM: a seccomp filter forbids it. why_no_thread() explains it.
[[nodiscard]] int start_thread(const char* name, std::function<void(std::stop_token)> body,
                               std::jthread* out);

/// Explain a failure of start_thread() for a log line, with the remedy.
/// @param rc returned by start_thread().
[[nodiscard]] std::string why_no_thread(int rc);

}  // namespace rio::base
