/// @file
/// Inbound windows: what remote NREAD, NWRITE and atomics may touch.
#pragma once

#include <cstdint>
#include <memory>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/caps.hpp"
#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// Bits of Window::rights.
struct WindowRights {
  static constexpr uint8_t kRead = 1;    ///< NREAD
  static constexpr uint8_t kWrite = 2;   ///< NWRITE, NWRITE_R, SWRITE
  static constexpr uint8_t kAtomic = 4;  ///< atomics
};

/// A window onto local memory.
struct Window {
  uint64_t rio_addr;         ///< RapidIO address of the first byte; with a key below 2^48
  uint64_t size_bytes;       ///< at least 1; the range does not wrap
  uint64_t iova;             ///< bus address of the first byte
  uint8_t rights;            ///< WindowRights, at least one
  uint32_t source = 0;       ///< source ID that may use it, under `source_mask`
  uint32_t source_mask = 0;  ///< bits of `source` that count; 0 lets all sources in
  uint16_t key = 0;          ///< what the top 16 bits of an address must hold; 0: no key
};

/// The windows of one queue pair. Control path, one thread. The memory is the card's from open() to
/// a successful close(); the destructor closes what is open. regs: WINDOW.
class WindowTable {
 public:
  /// Closes windows that an earlier owner left open. @param bus outlives the table.
  /// @return 0, -ETIMEDOUT, -ENODEV, -ENOMEM.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, uint32_t qp, uint32_t timeout_ms,
                                  std::unique_ptr<WindowTable>* out);
  ~WindowTable();
  WindowTable(const WindowTable&) = delete;
  WindowTable& operator=(const WindowTable&) = delete;

  /// @param index of the window, for close(). @return 0, -EINVAL (empty, wraps, no rights, not
  /// aligned as Caps::dma_addr_align says), -ENOSPC (all are open), -ETIMEDOUT, -ENODEV.
  [[nodiscard]] int open(const Window& window, uint32_t* index);
  /// Open the window of a number, 0 to regs::kWindowsPerQp - 1. @return -EBUSY (it is open), too.
  [[nodiscard]] int open_at(uint32_t index, const Window& window);
  /// @return 0, -ENOENT (not open), -ETIMEDOUT (the memory must stay as it is), -ENODEV (card gone:
  /// counts as closed).
  [[nodiscard]] int close(uint32_t index);
  /// Whether none is left to open.
  [[nodiscard]] bool full() const { return open_ == (1u << regs::kWindowsPerQp) - 1; }

 private:
  WindowTable(Bus& bus, const Caps& caps, uint32_t qp, uint32_t timeout_ms);
  [[nodiscard]] int check(const Window& window) const;
  [[nodiscard]] int command(uint32_t index, uint32_t enable_and_rights);

  Bus& bus_;
  Mmio bar_;
  PollHook hook_;
  uint64_t misaligned_;  // bits that must be 0 in both addresses
  uint32_t qp_;
  uint32_t timeout_ms_;
  uint32_t open_ = 0;  // a bit for each window that the card may have open
};

}  // namespace rio::pmd
