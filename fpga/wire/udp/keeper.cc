#include "fpga/wire/udp/keeper.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"

namespace rio::wire::udp {
namespace {

/// Period of the check whether the owner polls.
constexpr int kLookMs = 5;
constexpr uint64_t kNsPerMs = 1'000'000;

}  // namespace

int Keeper::start(std::string* error) {
  owner_ = getpid();
  epoll_ = base::Fd(epoll_create1(EPOLL_CLOEXEC));
  order_ = base::make_wake_fd();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = order_.get();
  if (!epoll_.valid() || !order_.valid() ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, order_.get(), &event) != 0) {
    const int rc = -errno;
    *error = base::why({"epoll or eventfd of the wire's thread", rc});
    return rc;
  }
  const int rc = base::start_thread(
      "rio-udp", [this](const std::stop_token& stop) { run(stop); }, &thread_);
  if (rc != 0) {
    *error = base::why_no_thread(rc);
  }
  return rc;
}

void Keeper::stop() {
  if (!thread_.joinable()) {
    return;
  }
  if (!of_this_process()) {
    thread_.detach();  // it is the parent's
    return;
  }
  thread_.request_stop();
  base::wake(order_.get());
  thread_.join();
}

void Keeper::before_fork() {
  if (std::this_thread::get_id() != thread_.get_id()) {  // otherwise this thread holds the lock
                                                         // already
    poke_mutex_.lock();
  }
}

void Keeper::after_fork() {
  if (std::this_thread::get_id() != thread_.get_id()) {
    poke_mutex_.unlock();
  }
}

void Keeper::in_child() {
  base::release_in_child(epoll_.get());
  base::release_in_child(order_.get());
  after_fork();
}

void Keeper::set_poke(Member::Poke poke, void* ctx) {
  const std::lock_guard lock(poke_mutex_);
  poke_ = poke;
  poke_ctx_ = ctx;
}

void Keeper::poke_soon() {
  base::wake(order_.get());
}

int Keeper::timeout_ms(bool watch) const {
  if (!watch) {
    return kLookMs;
  }
  if (again_) {
    return 1;
  }
  const uint64_t due = due_ns_.load(std::memory_order_relaxed);
  const uint64_t now = base::now_ns();
  if (due <= now) {
    return 1;
  }
  return static_cast<int>(std::min<uint64_t>((due - now) / kNsPerMs + 1, 1000));
}

/// @return whether a call was asked for.
bool Keeper::wait(bool watch) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket_;
  if (watch) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket_, &event);
  }
  const int count = epoll_wait(epoll_.get(), &event, 1, timeout_ms(watch));
  const bool ordered = count > 0 && event.data.fd == order_.get();
  if (ordered) {
    base::clear_wake_fd(order_.get());
  }
  if (watch) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_, nullptr);
  }
  return ordered;
}

bool Keeper::is_poked() {
  const std::lock_guard lock(poke_mutex_);
  return poke_ != nullptr;
}

bool Keeper::call() {
  const std::lock_guard lock(poke_mutex_);
  return poke_ != nullptr && poke_(poke_ctx_);
}

void Keeper::run(const std::stop_token& stop) {
  uint64_t seen = 0;
  bool watch = false;
  while (!stop.stop_requested()) {
    const bool ordered = wait(watch && is_poked());
    watch =
        asleep_->load(std::memory_order_acquire) || polls_.load(std::memory_order_relaxed) == seen;
    unattended_.store(watch, std::memory_order_relaxed);
    if (watch || ordered) {
      again_ = call();
    }
    seen = polls_.load(std::memory_order_relaxed);  // those of poke() are our own
  }
}

}  // namespace rio::wire::udp
