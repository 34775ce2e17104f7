/// @file
/// Transmit queue: type 11 messages and type 10 doorbells.
#pragma once

#include <cstdint>
#include <memory>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// A message gathered from two to four places. Takes two entries of the ring. Needs Caps::wide.
struct TxGather {
  uint64_t cookie;                          ///< comes back in TxDone, any value
  uint64_t iova[regs::kWideAddrs];          ///< aligned as Caps::tx_addr_align says
  uint16_t length_bytes[regs::kWideAddrs];  ///< each at least 1; multiples of 8 but for the last
  uint32_t dest_id;                         ///< destination
  uint8_t count;                            ///< places, 2 to 4
  uint8_t mbox;                             ///< as in TxMessage
  uint8_t flags;                            ///< TxFlags without kInline and kDoorbell
};

/// What a descriptor says beside address and cookie. Kept of the message sent last, since the next
/// one is mostly like it.
struct TxHeader {
  uint64_t key;           ///< dest_id, length and flags as they lie in TxMessage; mailbox 0
  uint64_t fixed;         ///< bits of the key that another message may not differ in
  uint64_t control_dest;  ///< first two words of the descriptor
  uint32_t length_bytes;
};

/// Sends. All functions belong to one thread, which may change while nobody is in a function.
/// [S0]; regs: tx_desc, tx_cpl; RIO Part 2 §2.3.1.
class alignas(64) TxQueue : public PostingQueue {
 public:
  /// Start the ring. Control path. @param bus outlives the queue. @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  std::unique_ptr<TxQueue>* out);

  /// Post messages, with one BAR write if there were any, then call the poll hook. The bytes of a
  /// message by address belong to the card until its TxDone; inline bytes are copied.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next message
  /// is one that the card cannot take (last_reject() says why; it is counted).
  uint16_t burst(const TxMessage* messages, uint16_t n);
  /// The same for messages in several places. @return 0, rejected, where Caps::wide is false.
  uint16_t burst_gather(const TxGather* messages, uint16_t n);
  /// Fetch what became of messages, in the order of completion. Calls the poll hook once, and looks
  /// again, when there is nothing. @return how many, 0 to `n`.
  uint16_t reap(TxDone* out, uint16_t n);

 private:
  TxQueue() = default;
  [[nodiscard]] uint32_t post_run(const TxMessage* messages, size_t n);
  [[nodiscard]] bool post_any(const TxMessage& message);
  [[nodiscard]] bool post_wide_inline(const TxMessage& message, uint32_t control);
  [[nodiscard]] bool post_gather(const TxGather& message);
  [[nodiscard]] static Reject refusal(uint32_t length_bytes, uint32_t flags);

  TxHeader header_{};
  // Constant.
  regs::TxDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;  // bits that must be 0 in an address
  uint32_t inline_bytes_max_ = 0;
  bool wide_ = false;
};

}  // namespace rio::pmd
