#include "base/bus_error.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "base/mapping.hpp"

namespace rio::base {
namespace {

/// A range, or one that is free (begin is 0). Never moves, for the signal handler.
struct Range {
  std::atomic<bool> taken = false;
  std::atomic<uintptr_t> begin = 0;
  std::atomic<size_t> len_bytes = 0;
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

constinit std::array<Range, 64> g_ranges;
constinit struct sigaction g_before {};

/// Make the range of an address read all ones. @return false: it is in none.
[[nodiscard]] bool survive(uintptr_t at) {
  for (const Range& range : g_ranges) {
    const uintptr_t begin =
        range.begin.load(std::memory_order_acquire);  // then its length is there
    const size_t len_bytes = range.len_bytes.load(std::memory_order_relaxed);
    if (begin != 0 && at >= begin && at - begin < len_bytes) {
      return put_ones_over(reinterpret_cast<void*>(begin), len_bytes) == 0;
    }
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool survived = info->si_code > 0 && survive(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved;
  if (survived) {
    return;
  }
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    g_before.sa_sigaction(signal, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(signal);
  } else if (info->si_code > 0 || g_before.sa_handler == SIG_DFL) {
    // The kernel, too, ends a process that ignores an access error of its own.
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns
  }
}

int install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  // First where the handler looks, then the handler.
  if (sigaction(SIGBUS, nullptr, &g_before) != 0 || sigaction(SIGBUS, &action, nullptr) != 0) {
    return -errno;
  }
  return 0;
}

}  // namespace

BusErrorRange::BusErrorRange(void* va, size_t len_bytes) {
  for (size_t i = 0; i < g_ranges.size(); ++i) {
    Range& range = g_ranges[i];
    if (!range.taken.exchange(true)) {
      range.len_bytes.store(len_bytes, std::memory_order_relaxed);
      // release: the length is there; pairs with survive().
      range.begin.store(reinterpret_cast<uintptr_t>(va), std::memory_order_release);
      slot_ = static_cast<int>(i);
      return;
    }
  }
}

BusErrorRange::~BusErrorRange() {
  if (slot_ >= 0) {
    Range& range = g_ranges[static_cast<size_t>(slot_)];
    range.begin.store(0);
    range.taken.store(false);
  }
}

BusErrorRange::BusErrorRange(BusErrorRange&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

BusErrorRange& BusErrorRange::operator=(BusErrorRange&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

int catch_bus_errors() {
  static const int kRc = install();
  return kRc;
}

}  // namespace rio::base
