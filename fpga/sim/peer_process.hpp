/// @file
/// The process at the other end of a UNIX socket. Its socket alone does not tell that it has died:
/// a child that it has forked keeps that open.
#pragma once

#include <sys/socket.h>

#include "base/trouble.hpp"
#include "fpga/sim/fd.hpp"

namespace rio::sim {

/// The process that connected, or that listened where this socket has connected. @return false:
/// errno says why not.
[[nodiscard]] bool peer_of(const Fd& socket, ucred* out);

/// A pidfd, which becomes readable when the process dies. @return ESRCH: it has died and was
/// waited for.
[[nodiscard]] base::Trouble watch_process(int pid, Fd* out);

/// Whether a descriptor is readable now; a pidfd: whether the process has died.
[[nodiscard]] bool is_readable(const Fd& fd);

/// Whether a process has died, also if its parent has not waited for it. @param pid above 0.
[[nodiscard]] bool has_died(int pid);

}  // namespace rio::sim
