#include "pmd/dev/wait.hpp"

#include <thread>

namespace rio::pmd {
namespace {
constexpr uint32_t kSpinTurns = 1000;  // a step or a register write of the card takes less
constexpr std::chrono::microseconds kNap{50};
}  // namespace

Waiter::Waiter(const PollHook& hook, uint32_t timeout_ms)
    : hook_(hook),
      deadline_(std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms)) {}

bool Waiter::pause() {
  hook_();
  if (++turns_ > kSpinTurns) {
    std::this_thread::sleep_for(kNap);
  }
  return std::chrono::steady_clock::now() < deadline_;
}

bool card_gone(Mmio& bar) {
  return bar.read32(regs::id::magic()) == regs::kAllOnes;
}

}  // namespace rio::pmd
