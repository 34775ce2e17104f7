#include "apps/common/std_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace rio::apps {

void prepare_std_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      // The lowest free number, which is fd. Output gets one that cannot be written, so that its
      // loss is seen.
      (void)open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
  (void)std::signal(SIGPIPE, SIG_IGN);
}

bool output_is_lost() {
  return std::ferror(stdout) != 0;
}

int flush_output(std::string* error) {
  const bool lost = output_is_lost();
  const int now = std::fflush(stdout) != 0 ? errno : 0;
  if (!lost && now == 0) {
    return 0;
  }
  *error = "cannot write to standard output";
  *error += now != 0 ? std::string(" (") + std::strerror(now) + ")" : "";
  *error += "; what was printed is lost: let its reader live longer, or give --json FILE";
  return -EIO;
}

}  // namespace rio::apps
