/// @file
/// The single thread of a member, and its news for the thread that steps the card.
#pragma once

#include <unistd.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/fd.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"

namespace rio::wire {

/// A thread that an eventfd wakes, and that calls a function when the card should be stepped. The
/// wire gives its body.
class MemberThread {
 public:
  /// The card should be stepped. @return whether to be called again soon, even if nothing arrives.
  using Poke = bool (*)(void* ctx);

  MemberThread() = default;
  ~MemberThread() { stop(); }
  MemberThread(const MemberThread&) = delete;
  MemberThread& operator=(const MemberThread&) = delete;

  /// Make the eventfd. @return the failure of this process.
  [[nodiscard]] base::Trouble open();
  /// Start the thread, after open(). @param name as for base::start_thread(). @return 0, -errno;
  /// `error` gives the cause.
  [[nodiscard]] int start(const char* name, std::function<void(std::stop_token)> body,
                          std::string* error);
  /// End the thread; does nothing in a process forked since open(), which does not have it.
  void stop();

  // Any thread.
  /// Whether the thread runs in this process, and not in the parent of a forked one.
  [[nodiscard]] bool of_this_process() const { return owner_ == getpid(); }
  /// Readable after wake() and poke_soon().
  [[nodiscard]] const base::Fd& order() const { return order_; }
  void wake() { base::wake(order_.get()); }
  /// Member::poke_soon().
  void poke_soon();
  /// Member::set_poke().
  void set_poke(Poke poke, void* ctx);
  [[nodiscard]] bool has_poke();
  /// Whether to call the function every few milliseconds even if nothing arrives.
  void set_regular(bool on);
  [[nodiscard]] bool is_regular() const { return regular_.load(std::memory_order_relaxed); }

  // The thread itself.
  /// How long to wait at most for something to arrive, in ms; -1: for ever. @param again result of
  /// the last call().
  [[nodiscard]] int wait_ms(bool again) const;
  /// Clear order(). @return whether poke_soon() was called.
  [[nodiscard]] bool take_order();
  /// Call the function, if any. @return whether it wants to be called again soon.
  [[nodiscard]] bool call();

  /// For a wire that keeps the thread out of the function while another thread forks: see
  /// base::InChild.
  void before_fork();
  void after_fork();

 private:
  int owner_ = 0;  // pid
  base::Fd order_;
  std::atomic<bool> asked_{false};
  std::atomic<bool> regular_{false};
  std::mutex mutex_;  // guards the members below
  Poke poke_ = nullptr;
  void* ctx_ = nullptr;

  std::jthread thread_;
};

/// News from a member's thread for the thread that steps the card, or orders the other way, in
/// order. Any thread.
template <class Item>
class News {
 public:
  /// @param flag set when take() has something; null, or outlives the object.
  explicit News(std::atomic<bool>* flag) : flag_(flag) {}
  void post(Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    if (flag_ != nullptr) {
      // release: the item is complete; the reader takes the mutex.
      flag_->store(true, std::memory_order_release);
    }
  }
  /// @return false: there is none.
  [[nodiscard]] bool take(Item* out) {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) {
      return false;
    }
    *out = std::move(items_.front());
    items_.pop_front();
    return true;
  }

 private:
  std::atomic<bool>* const flag_;
  std::mutex mutex_;
  std::deque<Item> items_;
};

}  // namespace rio::wire
