/// @file
/// The single thread of a member. While the owner polls, it only checks now and then that the owner
/// still does; otherwise it watches socket and clock in the owner's place.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/fork.hpp"
#include "fpga/wire/member_thread.hpp"

namespace rio::wire::udp {

class Keeper {
 public:
  /// @param socket becomes readable when something arrives. @param asleep whether the owner sleeps.
  /// @param thread is open. All outlive the object.
  Keeper(int socket, const std::atomic<bool>* asleep, MemberThread* thread)
      : thread_(*thread), socket_(socket), asleep_(asleep) {}
  /// Ends the thread; does nothing in a process forked since.
  ~Keeper() { thread_.stop(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  /// Start the thread. @return 0, -errno; `error` gives the cause.
  [[nodiscard]] int start(std::string* error);

  /// Called at each poll by the thread that steps the card. @param due_ns the next deadline, of
  /// CLOCK_MONOTONIC.
  void polled(uint64_t due_ns) {
    due_ns_.store(due_ns, std::memory_order_relaxed);
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Member::unattended(). Any thread.
  [[nodiscard]] bool unattended() const { return unattended_.load(std::memory_order_relaxed); }

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] int timeout_ms(bool watch) const;

  MemberThread& thread_;
  const int socket_;
  const std::atomic<bool>* const asleep_;
  std::atomic<bool> unattended_{false};
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint64_t> due_ns_{UINT64_MAX};
  bool again_ = false;

  // Another thread that forks waits until the thread is out of the poke function.
  const base::InChild in_child_{[](void* ctx) {
                                  MemberThread& thread = static_cast<Keeper*>(ctx)->thread_;
                                  base::release_in_child(thread.order().get());
                                  thread.after_fork();
                                },
                                this,
                                [](void* ctx) { static_cast<Keeper*>(ctx)->thread_.before_fork(); },
                                [](void* ctx) { static_cast<Keeper*>(ctx)->thread_.after_fork(); }};
};

}  // namespace rio::wire::udp
