/// @file
/// The card's windows onto what a domain has registered: through them the cards of peers read and
/// write it without a word.
#pragma once

#include <cstdint>

#include "lib/msg/port.hpp"
#include "lib/ofi/ask.hpp"

namespace rio::ofi {

class Memory;

/// Of one region. Windows' own.
struct MemoryWindow {
  bool open = false;
  bool lost = false;    // the card has not answered: it may be open
  uint32_t index = 0;   // of the card's table
  uint32_t source = 0;  // who may use it: these bits of a destID,
  uint32_t mask = 0;    // under this mask
  uint64_t rio_addr = 0;
  uint16_t key = 0;
  const pmd::mem::Region* region = nullptr;  // null: not registered with the card
};

/// Under a Guard.
class Windows {
 public:
  /// @param port outlives it. @param virtual_addresses as Regions::set_up().
  void set_up(msg::Port& port, bool virtual_addresses);

  /// Open a window for a peer that asks and has the region's key. The window lets in those that
  /// have asked, and as few others as a mask of destIDs can.
  /// @return false: the card has no window left, or none, or cannot reach the memory, or each
  /// access has to be counted: accesses come by messages.
  [[nodiscard]] bool open(Memory& memory, uint32_t source, WindowReply* out);
  /// No peer reaches the memory any more.
  /// @return 0; -FI_ETIMEDOUT: the card does not answer, and may still write it; logged.
  [[nodiscard]] int close(Memory& memory);

 private:
  [[nodiscard]] bool place(Memory& memory);
  [[nodiscard]] bool let_in(Memory& memory, uint32_t source);

  msg::Port* port_ = nullptr;
  bool virtual_addresses_ = false;
  uint64_t next_rio_addr_ = kFirstRioAddr;

  static constexpr uint64_t kFirstRioAddr = 1u << 20;
};

}  // namespace rio::ofi
