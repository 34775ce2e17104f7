#include <cerrno>

#include "pmd/card/shared_card.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using regs::RingState;
namespace qp_regs = regs::qp;
namespace window_regs = regs::window;

bool stop_ring(Mmio& bar, const PollHook& hook, uint32_t qp, uint32_t ring, uint32_t timeout_ms) {
  const uint32_t control = bar.read32(qp_regs::ring_control(qp, ring));
  const uint32_t state = qp_regs::RingStatus::state.get(bar.read32(qp_regs::ring_status(qp, ring)));
  const bool run = qp_regs::RingControl::run.get(control) != 0;
  if (!run && state == static_cast<uint32_t>(RingState::kStopped)) {
    return true;
  }
  const uint32_t gen = qp_regs::RingControl::gen.get(control) + 1;
  bar.write32(qp_regs::ring_control(qp, ring), qp_regs::RingControl::gen.put(gen));
  const auto is_stopped = [gen](uint32_t status) {
    return qp_regs::RingStatus::gen.get(status) == (gen & qp_regs::RingStatus::gen.max()) &&
           qp_regs::RingStatus::state.get(status) == static_cast<uint32_t>(RingState::kStopped);
  };
  uint32_t seen = 0;
  return wait_for_word(bar, hook, qp_regs::ring_status(qp, ring), timeout_ms, &seen, is_stopped) ==
         0;
}

bool close_window(Mmio& bar, const PollHook& hook, uint32_t qp, uint32_t i, uint32_t timeout_ms) {
  const uint32_t control = bar.read32(window_regs::control(qp, i));
  if (window_regs::Control::enable.get(control) == 0) {
    return true;
  }
  const uint32_t closed = window_regs::Control::gen.put(window_regs::Control::gen.get(control) + 1);
  bar.write32(window_regs::control(qp, i), closed);
  uint32_t seen = 0;
  return wait_for_word(bar, hook, window_regs::status(qp, i), timeout_ms, &seen,
                       [closed](uint32_t status) { return status == closed; }) == 0;
}

}  // namespace

int stop_orphan(Bus& bus, uint32_t qp, uint32_t timeout_ms) {
  Mmio bar = bus.bar();
  const PollHook hook = bus.poll_hook(qp);
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    if (!close_window(bar, hook, qp, i, timeout_ms)) {
      return -ETIMEDOUT;
    }
  }
  const uint32_t rings = bar.read32(qp_regs::rings(qp));
  for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
    if (((rings >> ring) & 1) != 0 && !stop_ring(bar, hook, qp, ring, timeout_ms)) {
      return -ETIMEDOUT;
    }
  }
  return 0;
}

}  // namespace rio::pmd
