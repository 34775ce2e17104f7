#include "pmd/dev/window_table.hpp"

#include <bit>
#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using Control = regs::window::Control;

constexpr uint64_t kKeyedLimit = uint64_t{1} << 48;  // the key lies above

}  // namespace

WindowTable::WindowTable(Bus& bus, const Caps& caps, uint32_t qp, uint32_t timeout_ms)
    : bus_(bus),
      bar_(bus.bar()),
      hook_(bus.poll_hook(qp)),
      misaligned_(caps.dma_addr_align - 1),
      qp_(qp),
      timeout_ms_(timeout_ms) {}

WindowTable::~WindowTable() {
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    if ((open_ >> i & 1u) != 0) {
      (void)close(i);  // close() logs errors
    }
  }
}

int WindowTable::create(Bus& bus, const Caps& caps, uint32_t qp, uint32_t timeout_ms,
                        std::unique_ptr<WindowTable>* out) {
  std::unique_ptr<WindowTable> table(new (std::nothrow) WindowTable(bus, caps, qp, timeout_ms));
  if (table == nullptr) {
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    // Windows that are open, and those that the card has still to open.
    const uint32_t seen = table->bar_.read32(regs::window::status(qp, i)) |
                          table->bar_.read32(regs::window::control(qp, i));
    if (const int error = Control::enable.get(seen) != 0 ? table->command(i, 0) : 0; error != 0) {
      return error;
    }
  }
  *out = std::move(table);
  return 0;
}

int WindowTable::check(const Window& window) const {
  constexpr uint8_t kAllRights = WindowRights::kRead | WindowRights::kWrite | WindowRights::kAtomic;
  const char* wrong = nullptr;
  const uint64_t limit = window.key != 0 ? kKeyedLimit : ~uint64_t{0};
  if (window.size_bytes == 0 || window.rio_addr >= limit ||
      window.size_bytes > limit - window.rio_addr || window.size_bytes > ~window.iova) {
    wrong = "choose a range that is not empty and does not wrap (below 2^48 with a key)";
  } else if (window.rights == 0 || (window.rights & ~kAllRights) != 0) {
    wrong = "give it at least one of the rights read, write, atomic";
  } else if (((window.rio_addr | window.iova) & misaligned_) != 0) {
    wrong = "align both addresses as the card's DMA wants them";
  }
  if (wrong == nullptr) {
    return 0;
  }
  base::log_error("%s: qp %u: inbound window at RapidIO address 0x%llx, %llu bytes: %s",
                  bus_.name().c_str(), qp_, static_cast<unsigned long long>(window.rio_addr),
                  static_cast<unsigned long long>(window.size_bytes), wrong);
  return -EINVAL;
}

int WindowTable::open(const Window& window, uint32_t* index) {
  const auto i = static_cast<uint32_t>(std::countr_one(open_));
  if (i >= regs::kWindowsPerQp) {
    base::log_error("%s: qp %u: all %u inbound windows are open; close one", bus_.name().c_str(),
                    qp_, regs::kWindowsPerQp);
    return -ENOSPC;
  }
  const int error = open_at(i, window);
  *index = error == 0 ? i : *index;
  return error;
}

int WindowTable::open_at(uint32_t i, const Window& window) {
  if (const int error = check(window); error != 0) {
    return error;
  }
  if (i >= regs::kWindowsPerQp || (open_ >> i & 1u) != 0) {
    base::log_error("%s: qp %u: inbound window %u is open, or does not exist: choose another",
                    bus_.name().c_str(), qp_, i);
    return i >= regs::kWindowsPerQp ? -EINVAL : -EBUSY;
  }
  using namespace regs::window;  // NOLINT: the names of its words
  bar_.write64(rio_lo(qp_, i), rio_hi(qp_, i), window.rio_addr);
  bar_.write64(size_lo(qp_, i), size_hi(qp_, i), window.size_bytes);
  bar_.write64(bus_lo(qp_, i), bus_hi(qp_, i), window.iova);
  bar_.write32(regs::window::source(qp_, i), window.source);
  bar_.write32(regs::window::source_mask(qp_, i), window.source_mask);
  bar_.write32(regs::window::key(qp_, i), window.key);
  bar_.write32(regs::window::pasid(qp_, i), 0);
  open_ |= 1u << i;  // once the command is written, the card may have it open
  const auto right = [&window](uint8_t bit) { return (window.rights & bit) != 0 ? 1u : 0u; };
  return command(i, Control::enable.put(1) | Control::read.put(right(WindowRights::kRead)) |
                        Control::write.put(right(WindowRights::kWrite)) |
                        Control::atomic.put(right(WindowRights::kAtomic)));
}

int WindowTable::close(uint32_t index) {
  if (index >= regs::kWindowsPerQp || (open_ >> index & 1u) == 0) {
    base::log_error("%s: qp %u: inbound window %u is not open", bus_.name().c_str(), qp_, index);
    return -ENOENT;
  }
  const int error = command(index, 0);
  if (error == 0 || error == -ENODEV) {
    open_ &= ~(1u << index);
  }
  return error;
}

int WindowTable::command(uint32_t index, uint32_t enable_and_rights) {
  const uint32_t control = regs::window::control(qp_, index);
  const uint32_t gen = Control::gen.get(bar_.read32(control)) + 1;
  const uint32_t want = Control::gen.put(gen) | enable_and_rights;
  // release: the window's words first; pairs with the card's read of GEN.
  bar_.write32(control, want);
  uint32_t seen = 0;
  const int error = wait_for_word(bar_, hook_, regs::window::status(qp_, index), timeout_ms_, &seen,
                                  [want](uint32_t value) { return value == want; });
  if (error == -ENODEV) {
    return log_gone(bus_.name());
  }
  if (error != 0) {
    base::log_error(
        "%s: qp %u: inbound window %u: no answer within %u ms, status 0x%x; reset the card",
        bus_.name().c_str(), qp_, index, timeout_ms_, seen);
  }
  return error;
}

}  // namespace rio::pmd
