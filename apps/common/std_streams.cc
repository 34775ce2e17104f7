#include "apps/common/std_streams.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace rio::apps {
namespace {

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

}  // namespace

bool output_is_lost() {
  if (std::ferror(stdout) != 0) {
    return true;
  }
  // The reader of a pipe is gone, though nothing may have been printed since.
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int run_program(const char* name, int (*program)(int, char**), int argc, char** argv) {
  prepare_std_streams();
  const int code = program(argc, argv);
  const bool lost = std::ferror(stdout) != 0;
  const int why = std::fflush(stdout) != 0 ? errno : 0;
  if (!lost && why == 0) {
    return code;
  }
  std::fprintf(stderr,
               "%s: error: cannot write to standard output%s%s%s; what was printed is lost: let "
               "its reader live longer, or print to a file\n",
               name, why != 0 ? " (" : "", why != 0 ? std::strerror(why) : "", why != 0 ? ")" : "");
  return std::max(code, 1);
}

}  // namespace rio::apps
