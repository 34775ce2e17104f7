#include "lib/ofi/attendant.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"
#include "lib/msg/waiting.hpp"
#include "lib/ofi/domain.hpp"

namespace rio::ofi {
namespace {

constexpr int kPauseMs = 1;
constexpr int kPauseMostMs = 16;
constexpr uint32_t kSleepMs = 1000;

}  // namespace

int Attendant::start(Domain& domain, std::unique_ptr<Attendant>* out) {
  std::unique_ptr<Attendant> made(new Attendant(domain));
  made->stop_fd_ = base::make_wake_fd();
  if (!made->stop_fd_.valid()) {
    const int rc = -errno;
    base::log_error("rio: progress (FI_PROGRESS_AUTO): %s", base::why({"eventfd", rc}).c_str());
    return rc;
  }
  const int rc = base::start_thread(
      "rio-progress", [self = made.get()](const std::stop_token& stop) { self->run(stop); },
      &made->thread_);
  if (rc != 0) {
    base::log_error("rio: progress (FI_PROGRESS_AUTO): %s", base::why_no_thread(rc).c_str());
    return rc;
  }
  *out = std::move(made);
  return 0;
}

Attendant::~Attendant() {
  if (thread_.joinable() && owner_ != getpid()) {
    thread_.detach();  // the process has forked since: the thread is the parent's
  } else if (thread_.joinable()) {
    thread_.request_stop();
    base::wake(stop_fd_.get());
    {
      const msg::Guard guard(domain_.port());
      domain_.port().sleepers().wake();
    }
    thread_.join();
  }
}

void Attendant::run(const std::stop_token& stop) {
  uint64_t seen = domain_.looks();
  int pause = kPauseMs;
  for (rest(pause); !stop.stop_requested(); rest(pause)) {
    const uint64_t looks = domain_.looks();
    if (looks != seen) {  // the user has made progress itself
      pause = std::min(2 * pause, kPauseMostMs);
    } else {
      pause = kPauseMs;
      attend(stop, looks);
    }
    seen = domain_.looks();
  }
}

/// Sleeps until the time is over, or the thread has to end.
void Attendant::rest(int ms) const {
  pollfd fd = {stop_fd_.get(), POLLIN, 0};
  static_cast<void>(::poll(&fd, 1, ms));
}

/// Makes progress until the user does.
void Attendant::attend(const std::stop_token& stop, uint64_t looks) {
  if (!domain_.port().config().sleeps) {
    const msg::Guard guard(domain_.port());
    domain_.work();
    return;
  }
  // The user's calls report an error of the card; it is no reason for this thread to spin.
  static_cast<void>(msg::wait(
      domain_.port(), kSleepMs, [this] { domain_.work(); },
      [&] { return stop.stop_requested() || domain_.looks() != looks; }));
}

}  // namespace rio::ofi
