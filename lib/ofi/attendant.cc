#include "lib/ofi/attendant.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "lib/msg/waiting.hpp"
#include "lib/ofi/domain.hpp"

namespace rio::ofi {
namespace {

constexpr int kPauseMs = 1;
constexpr int kPauseMostMs = 16;
constexpr uint32_t kSleepMs = 1000;

/// Signals are the user's, whose threads take them.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

int Attendant::start(Domain& domain, std::unique_ptr<Attendant>* out) {
  std::unique_ptr<Attendant> made(new Attendant(domain));
  made->stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (made->stop_fd_ < 0) {
    return -errno;
  }
  try {
    const NoSignals quiet;
    made->thread_ = std::thread([self = made.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return -error.code().value();
  }
  pthread_setname_np(made->thread_.native_handle(), "rio-progress");
  *out = std::move(made);
  return 0;
}

Attendant::~Attendant() {
  if (thread_.joinable()) {
    stop_ = true;
    const uint64_t one = 1;
    static_cast<void>(!::write(stop_fd_, &one, sizeof(one)));
    {
      const msg::Guard guard(domain_.port());
      msg::wake_all(domain_.port());
    }
    thread_.join();
  }
  if (stop_fd_ >= 0) {
    ::close(stop_fd_);
  }
}

void Attendant::run() {
  uint64_t seen = domain_.looks();
  int pause = kPauseMs;
  while (!rest(pause)) {
    const uint64_t looks = domain_.looks();
    if (looks != seen) {  // somebody looks himself
      pause = std::min(2 * pause, kPauseMostMs);
    } else {
      pause = kPauseMs;
      attend(looks);
    }
    seen = domain_.looks();
  }
}

/// @return true: it is over.
bool Attendant::rest(int ms) const {
  pollfd fd = {stop_fd_, POLLIN, 0};
  static_cast<void>(::poll(&fd, 1, ms));
  return stop_;
}

/// Until the user looks himself.
void Attendant::attend(uint64_t looks) {
  if (!domain_.port().config().sleeps) {
    const msg::Guard guard(domain_.port());
    domain_.work();
    return;
  }
  // What the card has lost is told to the user's calls, and no reason to be busy.
  static_cast<void>(msg::wait(
      domain_.port(), kSleepMs, [this] { domain_.work(); },
      [&] { return stop_ || domain_.looks() != looks; }));
}

}  // namespace rio::ofi
