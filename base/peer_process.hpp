/// @file
/// The process at the other end of a UNIX socket. The socket alone does not show its death, since a
/// child that it forked keeps the socket open.
#pragma once

#include <sys/socket.h>

#include "base/fd.hpp"
#include "base/trouble.hpp"

namespace rio::base {

/// Get the process that connected, or the one that listened if this socket connected. @return
/// false: errno tells the cause.
[[nodiscard]] bool peer_of(const Fd& socket, ucred* out);

/// Open a pidfd, which becomes readable when the process dies. @return ESRCH: it has died and was
/// waited for.
[[nodiscard]] base::Trouble watch_process(int pid, Fd* out);

/// Whether a descriptor is readable now; for a pidfd: whether the process has died.
[[nodiscard]] bool is_readable(const Fd& fd);

/// Whether a process has died, even if its parent has not waited for it. @param pid above 0.
[[nodiscard]] bool has_died(int pid);

}  // namespace rio::base
