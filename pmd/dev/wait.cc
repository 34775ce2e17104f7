#include "pmd/dev/wait.hpp"

#include <thread>

#include "base/log.hpp"

namespace rio::pmd {
namespace {
constexpr uint32_t kSpinTurns = 1000;  // a step or a register write of the card takes fewer
constexpr std::chrono::microseconds kNap{50};
// On a busy machine a nap takes milliseconds: for each one the card gets so many turns.
constexpr uint32_t kTurnsPerNap = 32;
// At least so many naps: the time may be over before an emulated card has had any CPU.
constexpr uint32_t kNapsLeast = 32;
}  // namespace

Waiter::Waiter(const PollHook& hook, uint32_t timeout_ms)
    : hook_(hook),
      deadline_(std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms)),
      naps_left_(timeout_ms == 0 ? 0 : kNapsLeast) {}

bool Waiter::pause() {
  hook_();
  if (++turns_ > kSpinTurns) {
    std::this_thread::sleep_for(kNap);
    for (uint32_t i = 1; i < kTurnsPerNap; ++i) {
      hook_();
    }
    naps_left_ -= naps_left_ > 0 ? 1 : 0;
  }
  return std::chrono::steady_clock::now() < deadline_ || naps_left_ > 0;
}

bool card_gone(Mmio& bar) {
  return bar.read32(regs::id::magic()) == regs::kAllOnes;
}

int log_gone(const std::string& who) {
  base::log_error(
      "%s: card is gone (its magic reads all ones); check slot, link and power, then rescan the "
      "bus",
      who.c_str());
  return -ENODEV;
}

}  // namespace rio::pmd
