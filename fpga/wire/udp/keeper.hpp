/// @file
/// The one thread of a member: while the owner polls it only checks, now and then, that it still
/// does; else it watches the socket and the clock in the owner's place.
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
  /// Both outlive the object. @param socket that becomes readable when something comes.
  /// @param asleep whether the owner sleeps.
  Keeper(int socket, const std::atomic<bool>* asleep) : socket_(socket), asleep_(asleep) {}
  ~Keeper() { stop(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  /// Begin. @return 0, -errno; `error` tells the cause.
  [[nodiscard]] int start(std::string* error);
  /// End the thread; not in a process that was forked since.
  void stop();

  /// Called by the thread that steps the card, at each poll. @param due_ns next deadline, of
  /// CLOCK_MONOTONIC.
  void polled(uint64_t due_ns) {
    due_ns_.store(due_ns, std::memory_order_relaxed);
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Any thread.
  /// Whether the thread was started here, and not in the parent of a process that was forked.
  [[nodiscard]] bool of_this_process() const { return owner_ == getpid(); }
  /// As Member::unattended().
  [[nodiscard]] bool unattended() const { return unattended_.load(std::memory_order_relaxed); }
  void set_poke(Member::Poke poke, void* ctx);
  /// Call it.
  void poke_soon();

 private:
  /// Keep the thread out of call() while another thread forks.
  void before_fork();
  void after_fork();
  void in_child();
  void run(const std::stop_token& stop);
  [[nodiscard]] bool wait(bool watch);
  [[nodiscard]] int timeout_ms(bool watch) const;
  bool call();
  /// Whether call() has a function to call. If not, datagrams stay queued and must not wake the
  /// thread.
  [[nodiscard]] bool is_poked();

  const int socket_;
  const std::atomic<bool>* const asleep_;
  int owner_ = 0;  // pid
  base::Fd epoll_;
  base::Fd order_;  // eventfd
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
