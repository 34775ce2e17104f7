/// @file
/// Windows of the card onto a domain's registered memory: through them the cards of peers read and
/// write it without involving software here.
#pragma once

#include <cstdint>

#include "lib/msg/message_port.hpp"
#include "lib/ofi/ask.hpp"

namespace rio::ofi {

class Memory;

/// The window onto one region; belongs to Windows.
struct MemoryWindow {
  bool open = false;
  bool lost = false;    // the card did not confirm that it has closed the window: it may be open
  uint32_t index = 0;   // index in the card's table
  uint32_t source = 0;  // which destIDs may use it: those with these bits
  uint32_t mask = 0;    // under this mask
  uint64_t rio_addr = 0;
  uint16_t key = 0;
  const pmd::mem::Region* region = nullptr;  // null: not registered with the card
};

/// The windows of a domain. All functions under a Guard.
class Windows {
 public:
  /// @param port outlives it. @param virtual_addresses as Regions::set_up().
  void set_up(msg::MessagePort& port, bool virtual_addresses) {
    port_ = &port;
    virtual_addresses_ = virtual_addresses;
  }

  /// Open a window for a peer that asks and has the region's key. The window lets in the peers that
  /// have asked, and as few others as a mask of destIDs can. @return false: use messages. The card
  /// has no windows or none left, cannot reach the memory, or accesses have to be counted.
  [[nodiscard]] bool open(Memory& memory, uint32_t source, WindowReply* out);
  /// Close the window: no peer reaches the memory any more. @return 0; -FI_ETIMEDOUT: the card does
  /// not answer, and may still write it; logged.
  [[nodiscard]] int close(Memory& memory);

 private:
  [[nodiscard]] bool place(Memory& memory);
  [[nodiscard]] bool let_in(Memory& memory, uint32_t source);

  msg::MessagePort* port_ = nullptr;
  bool virtual_addresses_ = false;
  uint64_t next_rio_addr_ = kFirstRioAddr;

  static constexpr uint64_t kFirstRioAddr = 1u << 20;
};

}  // namespace rio::ofi
