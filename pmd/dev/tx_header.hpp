/// @file
/// What the transmit queue keeps of the message sent last, since the next one is usually like it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// The words of a descriptor beside the address. The card gets no cookie: the queue keeps it.
struct TxHeader {
  uint64_t key;    ///< dest_id, length and flags as they lie in TxMessage; mailbox 0
  uint64_t fixed;  ///< bits of the key that must not differ between messages with this header
  uint64_t control_dest;   ///< first two words of the descriptor
  uint64_t cookie_length;  ///< the next two: a cookie of 0, and the length

  [[nodiscard]] uint32_t length_bytes() const { return static_cast<uint32_t>(cookie_length >> 32); }
};

namespace tx {

// The key is the second half of a TxMessage, loaded at once.
static_assert(offsetof(TxMessage, dest_id) == 16 && offsetof(TxMessage, length_bytes) == 20 &&
              offsetof(TxMessage, mbox) == 22 && offsetof(TxMessage, flags) == 23);
static_assert(offsetof(regs::TxDesc, cookie) == 8 && offsetof(regs::TxDesc, length) == 12);

inline constexpr uint32_t kKeyMboxShift = 48;  ///< the mailbox in a key

[[nodiscard]] inline uint64_t key_of(const TxMessage& message) {
  uint64_t key = 0;
  std::memcpy(&key, reinterpret_cast<const uint8_t*>(&message) + offsetof(TxMessage, dest_id),
              sizeof key);
  return key;
}

/// Fill an entry, as words: the emulated card loads words, and would wait for stores of other
/// sizes. @param mbox bits of the mailbox in the message's key. @param addr, aux last words of the
/// entry.
[[gnu::always_inline]] inline void fill_entry(const TxHeader& header, uint64_t mbox, uint64_t addr,
                                              uint64_t aux, regs::TxDesc* entry) {
  const uint64_t control_dest =
      header.control_dest | mbox >> (kKeyMboxShift - regs::tx_desc::Control::mbox.lsb);
  std::memcpy(entry, &control_dest, sizeof control_dest);
  std::memcpy(&entry->cookie, &header.cookie_length, sizeof header.cookie_length);
  entry->addr = addr;
  entry->aux = aux;
}

}  // namespace tx
}  // namespace rio::pmd
