#include "pmd/dev/rail_watch.hpp"

#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

namespace words = regs::rail;
using words::Control;

/// Copy a status that the card may be writing.
regs::RailStatus load(const void* from) {
  constexpr uint32_t kWords = sizeof(regs::RailStatus) / sizeof(uint32_t);
  const auto* const at = static_cast<const uint32_t*>(from);
  uint32_t image[kWords];
  for (uint32_t i = kWords; i-- > 0;) {
    // acquire: from the last word to the first one, so that numbers that agree hold for the words
    // in between; pairs with the card's write.
    image[i] = __atomic_load_n(at + i, __ATOMIC_ACQUIRE);
    dma_read_barrier();
  }
  regs::RailStatus status;
  std::memcpy(&status, image, sizeof status);
  return status;
}

}  // namespace

RailWatch::RailWatch(Bus& bus, uint32_t timeout_ms)
    : bus_(bus), bar_(bus.bar()), hook_(bus.poll_hook(0)), timeout_ms_(timeout_ms) {}

RailWatch::~RailWatch() {
  (void)close();  // close() logs errors
}

int RailWatch::create(Card& card, uint32_t period_us, uint32_t timeout_ms,
                      std::unique_ptr<RailWatch>* out) {
  const char* const name = card.bus().name().c_str();
  if (!card.blocks().has_rail()) {
    base::log_error("%s: the card has no rails block%s: ask it by its destID, or do without", name,
                    card.caps().is_vf ? ", which only a physical function has" : "");
    return -ENOTSUP;
  }
  if (period_us == 0) {
    base::log_error("%s: a rail status every 0 us: give a period of at least 1 us", name);
    return -EINVAL;
  }
  std::unique_ptr<RailWatch> watch(new (std::nothrow) RailWatch(card.bus(), timeout_ms));
  if (watch == nullptr) {
    return -ENOMEM;
  }
  if (const int error = watch->enable(period_us); error != 0) {
    return error;
  }
  *out = std::move(watch);
  return 0;
}

int RailWatch::enable(uint32_t period_us) {
  bool is_enabled = false;
  const uint32_t seen = bar_.read32(words::status()) | bar_.read32(words::control());
  // An earlier owner may have left the block enabled, or the card may have that still to do.
  if (const int error = Control::enable.get(seen) != 0 ? command(false, &is_enabled) : 0;
      error != 0) {
    return error;
  }
  constexpr size_t kBytes = sizeof(regs::RailStatus);
  if (const int error = bus_.dma_alloc(kBytes, kBytes, &memory_); error != 0) {
    return error;
  }
  bar_.write64(words::base_lo(), words::base_hi(), memory_.iova);
  bar_.write32(words::period_us(), period_us);
  if (const int error = command(true, &is_enabled); error != 0 || is_enabled) {
    return error;
  }
  base::log_error(
      "%s: the card refuses to write its rail status to bus address 0x%llx every %u us; update the "
      "gateware",
      bus_.name().c_str(), static_cast<unsigned long long>(memory_.iova), period_us);
  return -EPROTO;
}

int RailWatch::read(RailState* out) const {
  if (memory_.va == nullptr) {
    return -ENODEV;
  }
  int rc = -EAGAIN;
  for (uint32_t look = 0; look < kLooksMost && rc == -EAGAIN; ++look) {
    if (look > 0) {
      hook_();
      cpu_pause();
    }
    rc = read_rail_state(load(memory_.va), out);
  }
  return rc;
}

int RailWatch::close() {
  if (memory_.va == nullptr) {
    return 0;
  }
  bool is_enabled = false;
  const int error = command(false, &is_enabled);
  if (error == 0 || error == -ENODEV) {
    bus_.dma_free(memory_);
  }
  memory_ = {};
  return error;
}

/// Write CONTROL and wait for the card's answer. @param is_enabled what the card answers.
int RailWatch::command(bool enable, bool* is_enabled) {
  const uint32_t gen = Control::gen.get(bar_.read32(words::control()) + 1);
  // release: the block's words first; pairs with the card's read of GEN.
  bar_.write32(words::control(), Control::gen.put(gen) | Control::enable.put(enable ? 1 : 0));
  uint32_t seen = 0;
  const int error = wait_for_word(bar_, hook_, words::status(), timeout_ms_, &seen,
                                  [gen](uint32_t value) { return Control::gen.get(value) == gen; });
  if (error == -ENODEV) {
    return log_gone(bus_.name());
  }
  if (error != 0) {
    base::log_error("%s: rails block: no answer within %u ms, status 0x%x; reset the card",
                    bus_.name().c_str(), timeout_ms_, seen);
    return error;
  }
  *is_enabled = Control::enable.get(seen) != 0;
  return 0;
}

}  // namespace rio::pmd
