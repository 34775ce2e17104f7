/// @file
/// The single thread of a member. While the owner polls, it only checks now and then that the owner
/// still does; otherwise it watches socket and clock in the owner's place.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/fd.hpp"
#include "base/fork.hpp"
#include "fpga/wire/member.hpp"

namespace rio::wire::udp {

class Keeper {
 public:
  /// @param socket becomes readable when something arrives; outlives the object. @param asleep
  /// whether the owner sleeps; outlives the object.
  Keeper(int socket, const std::atomic<bool>* asleep) : socket_(socket), asleep_(asleep) {}
  ~Keeper() { stop(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  /// Start the thread. @return 0, -errno; `error` gives the cause.
  [[nodiscard]] int start(std::string* error);
  /// End the thread; does nothing in a process forked since.
  void stop();

  /// Called at each poll by the thread that steps the card. @param due_ns the next deadline, of
  /// CLOCK_MONOTONIC.
  void polled(uint64_t due_ns) {
    due_ns_.store(due_ns, std::memory_order_relaxed);
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Any thread.
  /// Whether the thread runs in this process, and not in the parent of a forked one.
  [[nodiscard]] bool of_this_process() const { return owner_ == getpid(); }
  /// Member::unattended().
  [[nodiscard]] bool unattended() const { return unattended_.load(std::memory_order_relaxed); }
  void set_poke(Member::Poke poke, void* ctx);
  /// Let the thread call the function soon.
  void poke_soon();

 private:
  /// Keep the thread out of the function while another thread forks.
  void before_fork();
  void after_fork();
  void in_child();
  void run(const std::stop_token& stop);
  [[nodiscard]] bool wait(bool watch);
  [[nodiscard]] int timeout_ms(bool watch) const;
  bool call();
  /// Whether a function is set. If not, datagrams stay queued and must not wake the thread.
  [[nodiscard]] bool is_poked();

  const int socket_;
  const std::atomic<bool>* const asleep_;
  int owner_ = 0;  // pid
  base::Fd epoll_;
  base::Fd order_;  // an eventfd
  std::jthread thread_;
  std::atomic<bool> unattended_{false};
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint64_t> due_ns_{UINT64_MAX};
  bool again_ = false;

  std::mutex poke_mutex_;
  Member::Poke poke_ = nullptr;
  void* poke_ctx_ = nullptr;

  const base::InChild in_child_{[](void* ctx) { static_cast<Keeper*>(ctx)->in_child(); }, this,
                                [](void* ctx) { static_cast<Keeper*>(ctx)->before_fork(); },
                                [](void* ctx) { static_cast<Keeper*>(ctx)->after_fork(); }};
};

}  // namespace rio::wire::udp
