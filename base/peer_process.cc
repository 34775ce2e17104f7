#include "base/peer_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace rio::base {

bool peer_of(const Fd& socket, ucred* out) {
  socklen_t len = sizeof *out;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, out, &len) == 0;
}

base::Trouble watch_process(int pid, Fd* out) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) {
    return base::failed("pidfd_open");
  }
  *out = std::move(fd);
  return {};
}

bool is_readable(const Fd& fd) {
  pollfd one{fd.get(), POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

bool has_died(int pid) {
  Fd process;
  if (!watch_process(pid, &process)) {
    return is_readable(process);
  }
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace rio::base
