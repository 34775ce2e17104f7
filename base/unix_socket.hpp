/// @file
/// UNIX sockets that carry descriptors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace rio::base {

/// Descriptors that one message carries at most.
inline constexpr size_t kFdsMax = 80;

// Functions return 0 or -errno and log nothing. None waits. Any thread.

/// Listen at a path, for this user only. A socket there without a listener is replaced.
/// @param type SOCK_STREAM or SOCK_SEQPACKET. @param backlog connections that may wait. @return
/// -EADDRINUSE: it has a listener, or it is no socket; -ENAMETOOLONG.
[[nodiscard]] int listen_at(const std::string& path, int type, Fd* out, int backlog = 4);
/// @return -ENOENT, -ECONNREFUSED: no listener; -EAGAIN: too many wait there.
[[nodiscard]] int connect_to(const std::string& path, int type, Fd* out);
/// @return -EAGAIN: no connection waits.
[[nodiscard]] int accept_from(const Fd& listener, Fd* out);

/// Send all of it, or nothing. @param fds at most kFdsMax; stay the caller's. @return -EAGAIN: no
/// room; -EPIPE: the peer has gone.
[[nodiscard]] int send_with_fds(const Fd& socket, std::span<const std::byte> bytes,
                                std::span<const int> fds);
/// Take one message (SOCK_SEQPACKET), or what is there. @param fds what came with it.
/// @return bytes, 0: the peer has gone; -EAGAIN: nothing there; -EMSGSIZE: longer than `bytes`, or
/// more descriptors than kFdsMax; -EMFILE: no room for the descriptors that came. Neither is kept.
[[nodiscard]] ssize_t receive_with_fds(const Fd& socket, std::span<std::byte> bytes,
                                       std::vector<Fd>* fds);

}  // namespace rio::base
