#include "base/thread.hpp"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace rio::base {
namespace {

/// Blocks all signals of the calling thread while it lives, since a new thread inherits the mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

int start_thread(const char* name, std::function<void(std::stop_token)> body, std::jthread* out) {
  try {
    const SignalsBlocked blocked;
    std::jthread made(std::move(body));
    pthread_setname_np(made.native_handle(), name);
    *out = std::move(made);
    return 0;
  } catch (const std::system_error& error) {
    return -error.code().value();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

std::string why_no_thread(int rc) {
  const bool forbidden = rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
  return std::string("no thread can be started: ") + std::strerror(-rc) +
         (forbidden ? "; allow clone and clone3 in the container's seccomp profile"
                    : "; raise the limit of processes and threads (ulimit -u, pids.max of the "
                      "cgroup), or that of memory (ulimit -v)");
}

}  // namespace rio::base
