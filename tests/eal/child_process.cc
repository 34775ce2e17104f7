#include "tests/eal/child_process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace rio::test {

ChildProcess::ChildProcess(const std::vector<std::string>& args) {
  int to[2];
  int from[2];
  if (pipe(to) != 0 || pipe(from) != 0) {
    return;
  }
  std::vector<std::string> all = {"test"};
  all.insert(all.end(), args.begin(), args.end());
  std::vector<char*> argv;
  argv.reserve(all.size() + 1);
  for (std::string& arg : all) {
    argv.push_back(arg.data());
  }
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int fd : {to[0], to[1], from[0], from[1]}) {
      close(fd);
    }
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  in_ = to[1];
  out_ = from[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill9();
  }
  close(in_);
  close(out_);
}

std::string ChildProcess::line() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(4 * kPatienceMs);
  for (;;) {
    if (const size_t at = text_.find('\n'); at != std::string::npos) {
      std::string first = text_.substr(0, at);
      text_.erase(0, at + 1);
      return first;
    }
    pollfd fd{.fd = out_, .events = POLLIN, .revents = 0};
    char bytes[512];
    if (std::chrono::steady_clock::now() > end || poll(&fd, 1, 4 * kPatienceMs) <= 0) {
      return "";
    }
    const ssize_t n = read(out_, bytes, sizeof(bytes));
    if (n <= 0) {
      return "";
    }
    text_.append(bytes, static_cast<size_t>(n));
  }
}

bool ChildProcess::tell(const std::string& command) {
  const std::string text = command + "\n";
  return write(in_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void ChildProcess::kill9() {
  kill(pid_, SIGKILL);
  (void)wait();
}

int ChildProcess::wait() {
  int status = 0;
  const bool ended = waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status);
  pid_ = -1;
  return ended ? WEXITSTATUS(status) : -1;
}

}  // namespace rio::test
