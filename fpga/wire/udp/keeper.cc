#include "fpga/wire/udp/keeper.hpp"

#include <poll.h>

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"

namespace rio::wire::udp {
namespace {

/// Period of the check whether the owner polls.
constexpr int kLookMs = 5;
constexpr uint64_t kNsPerMs = 1'000'000;

}  // namespace

int Keeper::start(std::string* error) {
  return thread_.start(
      "rio-udp", [this](const std::stop_token& stop) { run(stop); }, error);
}

int Keeper::timeout_ms(bool watch) const {
  if (!watch) {
    return kLookMs;
  }
  const uint64_t due = due_ns_.load(std::memory_order_relaxed);
  const uint64_t now = base::now_ns();
  if (again_ || due <= now) {
    return 1;
  }
  return static_cast<int>(std::min<uint64_t>((due - now) / kNsPerMs + 1, 1000));
}

void Keeper::run(const std::stop_token& stop) {
  uint64_t seen = 0;
  bool watch = false;
  while (!stop.stop_requested()) {
    // Without a function datagrams stay queued, and must not wake the thread.
    watch = watch && thread_.has_poke();
    pollfd fds[] = {{thread_.order().get(), POLLIN, 0}, {watch ? socket_ : -1, POLLIN, 0}};
    poll(fds, std::size(fds), timeout_ms(watch));
    const bool ordered = fds[0].revents != 0 && thread_.take_order();
    watch =
        asleep_->load(std::memory_order_acquire) || polls_.load(std::memory_order_relaxed) == seen;
    unattended_.store(watch, std::memory_order_relaxed);
    if (watch || ordered) {
      again_ = thread_.call();
    }
    seen = polls_.load(std::memory_order_relaxed);  // those of poke() are our own
  }
}

}  // namespace rio::wire::udp
