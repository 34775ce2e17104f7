/// @file
/// Bounded waiting for a word of the card. Control path.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/bus.hpp"

namespace rio::pmd {

/// A deadline that lets an emulated card work and a real one take its time. One thread.
class Waiter {
 public:
  /// @param hook called by each pause(). @param timeout_ms 0: check only once.
  Waiter(const PollHook& hook, uint32_t timeout_ms);
  /// Let time pass. @return false: the time is over, and the hook was called some thousand times.
  [[nodiscard]] bool pause();

 private:
  PollHook hook_;
  std::chrono::steady_clock::time_point deadline_;
  uint32_t turns_ = 0;
  uint32_t naps_left_;
};

/// True if the magic word reads all ones, and only then: the card is gone. One BAR read.
[[nodiscard]] bool card_gone(Mmio& bar);

/// Log that the card is gone. @param who "0000:03:00.0: reset". @return -ENODEV.
int log_gone(const std::string& who);

/// Read a word until `done(value)` holds; all ones do not count if the card is gone. Logs nothing.
/// @param seen last value read, always set. @return 0, -ENODEV (card gone), -ETIMEDOUT.
template <class Done>
[[nodiscard]] int wait_for_word(Mmio& bar, const PollHook& hook, uint32_t offset_bytes,
                                uint32_t timeout_ms, uint32_t* seen, Done&& done) {
  Waiter waiter(hook, timeout_ms);
  bool more = true;
  for (;;) {
    *seen = bar.read32(offset_bytes);
    if (*seen == regs::kAllOnes && card_gone(bar)) {
      return -ENODEV;
    }
    if (done(*seen)) {
      return 0;
    }
    if (!more) {  // that was the last check, after the time was over
      return card_gone(bar) ? -ENODEV : -ETIMEDOUT;
    }
    more = waiter.pause();
  }
}

}  // namespace rio::pmd
