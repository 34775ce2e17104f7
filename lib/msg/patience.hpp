/// @file
/// How long a thread that finds nothing polls before it gives its CPU away.
#pragma once

#include <cstdint>

namespace rio::msg {

/// The operating system's part of giving a CPU away. Tests have their own.
struct Scheduler {
  /// Nanoseconds, never backwards.
  uint64_t (*now_ns)();
  /// How often another thread has run on the CPU of the calling thread, which was ready. Wraps.
  uint32_t (*switches)();
  /// Let another thread that is ready for this CPU run, if there is one.
  void (*yield)();
};

/// The scheduler of Linux.
[[nodiscard]] const Scheduler& linux_scheduler();

/// Learns from what happens to a thread that polls whether other threads want its CPU. While none
/// does, the thread polls on. Otherwise it yields whenever it has found nothing for a limit of
/// time. The limit follows the yields: it becomes short when the other threads yield soon, too, as
/// ranks do that wait for each other, and long when they compute, which makes this thread come back
/// late. An object belongs to one thread.
class Patience {
 public:
  static constexpr uint64_t kLimitMinNs = 2'000;    ///< shortest limit
  static constexpr uint64_t kLimitMaxNs = 128'000;  ///< longest limit
  /// A yield that takes longer was to a thread that computes.
  static constexpr uint64_t kLongNs = 500'000;
  /// A thread that only polls takes less time from one look() to the next.
  static constexpr uint64_t kGapNs = 500'000;
  /// How long the CPU counts as shared after another thread has run on it.
  static constexpr uint64_t kSharedNs = 100'000'000;
  /// After so many yields in a row that let no thread run, the CPU does not count as shared.
  static constexpr uint32_t kLoneYields = 8;

  /// @param scheduler outlives this.
  explicit Patience(const Scheduler& scheduler = linux_scheduler())
      : scheduler_(&scheduler), switches_(scheduler.switches()), looked_ns_(scheduler.now_ns()) {}
  /// The calling thread's.
  [[nodiscard]] static Patience& of_this_thread();

  /// Find out whether the CPU is shared. Call it every few hundred polls. @param waits whether most
  /// polls since the last call found nothing.
  void look(bool waits);
  /// Whether to call poll() now and then.
  [[nodiscard]] bool is_shared() const { return is_shared_; }
  /// @param waits whether all polls since the last call found nothing. @return whether that lasts
  /// for so long that yield() is due.
  [[nodiscard]] bool poll(bool waits);
  /// Yield. Call it without a lock that others may want.
  void yield();
  /// The current limit.
  [[nodiscard]] uint64_t limit_ns() const { return limit_ns_; }

 private:
  void share(uint64_t now_ns);

  const Scheduler* scheduler_;
  uint32_t switches_;  // Scheduler::switches() when it was last looked at
  uint64_t looked_ns_;
  bool is_shared_ = false;
  uint32_t lone_yields_ = 0;  // in a row
  uint64_t limit_ns_ = kLimitMaxNs / 8;
  uint64_t shared_until_ns_ = 0;
  uint64_t idle_since_ns_ = 0;
};

}  // namespace rio::msg
