#include "fpga/wire/member_thread.hpp"

#include "base/thread.hpp"

namespace rio::wire {

base::Trouble MemberThread::open() {
  owner_ = getpid();
  order_ = base::make_wake_fd();
  return order_.valid() ? base::Trouble{} : base::failed("eventfd");
}

int MemberThread::start(const char* name, std::function<void(std::stop_token)> body,
                        std::string* error) {
  const int rc = base::start_thread(name, std::move(body), &thread_);
  if (rc != 0) {
    *error = base::why_no_thread(rc);
  }
  return rc;
}

void MemberThread::stop() {
  if (!thread_.joinable()) {
    return;
  }
  if (!of_this_process()) {
    thread_.detach();  // the thread is the parent's
    return;
  }
  thread_.request_stop();
  wake();
  thread_.join();
}

void MemberThread::poke_soon() {
  asked_.store(true, std::memory_order_relaxed);
  wake();
}

void MemberThread::set_poke(Poke poke, void* ctx) {
  const std::lock_guard lock(mutex_);
  poke_ = poke;
  ctx_ = ctx;
}

void MemberThread::set_regular(bool on) {
  regular_.store(on, std::memory_order_relaxed);
  wake();
}

int MemberThread::wait_ms(bool again) const {
  constexpr int kSoonMs = 1;
  constexpr int kRegularMs = 2;
  return again ? kSoonMs : regular_.load(std::memory_order_relaxed) ? kRegularMs : -1;
}

bool MemberThread::has_poke() {
  const std::lock_guard lock(mutex_);
  return poke_ != nullptr;
}

bool MemberThread::take_order() {
  base::clear_wake_fd(order_.get());
  return asked_.exchange(false, std::memory_order_relaxed);
}

bool MemberThread::call() {
  const std::lock_guard lock(mutex_);
  return poke_ != nullptr && poke_(ctx_);
}

void MemberThread::before_fork() {
  if (std::this_thread::get_id() != thread_.get_id()) {  // otherwise it holds the lock already
    mutex_.lock();
  }
}

void MemberThread::after_fork() {
  if (std::this_thread::get_id() != thread_.get_id()) {
    mutex_.unlock();
  }
}

}  // namespace rio::wire
