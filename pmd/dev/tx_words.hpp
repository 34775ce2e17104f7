/// @file
/// What the words of a transmit descriptor say, made of the flags of a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pmd/dev/tx_queue.hpp"

namespace rio::pmd::tx {

using Control = regs::tx_desc::Control;

inline constexpr uint32_t kSsize256 = 14;      ///< code of 256 bytes. RIO Part 2 §4.1.5
inline constexpr uint32_t kSsizeCodeBase = 8;  ///< flags carry the code less this
inline constexpr uint32_t kPrioMax = 2;

// The key is the second half of a TxMessage, loaded at once.
static_assert(offsetof(TxMessage, dest_id) == 16 && offsetof(TxMessage, length_bytes) == 20 &&
              offsetof(TxMessage, mbox) == 22 && offsetof(TxMessage, flags) == 23);

[[nodiscard]] inline uint64_t key_of(const TxMessage& message) {
  uint64_t key = 0;
  std::memcpy(&key, reinterpret_cast<const uint8_t*>(&message) + offsetof(TxMessage, dest_id),
              sizeof key);
  return key;
}

/// The meaning of TxFlags, by their value.
struct FlagMeaning {
  uint32_t control;           ///< word of the descriptor, less the mailbox
  uint16_t segment_bytes;     ///< 0 if invalid
  uint16_t length_bytes_max;  ///< 0 if invalid, so that no length fits
};

constexpr FlagMeaning meaning_of(uint32_t flags) {
  const uint32_t size_code = flags >> TxFlags::kSsizeShift;
  const uint32_t ssize = size_code == 0 ? kSsize256 : kSsizeCodeBase + size_code;
  const uint32_t prio = flags & TxFlags::kPrioMask;
  if (ssize > kSsize256 || prio > kPrioMax) {
    return {0, 0, 0};
  }
  const uint32_t segment_bytes = regs::kSegmentBytesMax >> (kSsize256 - ssize);
  return {Control::op.put(static_cast<uint32_t>(regs::TxOp::kMessage)) |
              Control::order.put((flags & TxFlags::kOrder) != 0 ? 1 : 0) | Control::prio.put(prio) |
              Control::ssize.put(ssize),
          static_cast<uint16_t>(segment_bytes),
          static_cast<uint16_t>(segment_bytes * regs::kSegmentsMax)};
}

inline constexpr uint32_t kSpecialFlags = TxFlags::kInline | TxFlags::kDoorbell;

/// @param no_lengths flags with which no length fits.
constexpr std::array<FlagMeaning, 256> make_meanings(uint32_t no_lengths) {
  std::array<FlagMeaning, 256> meanings{};
  for (uint32_t flags = 0; flags < meanings.size(); ++flags) {
    meanings[flags] = (flags & no_lengths) == 0 ? meaning_of(flags) : FlagMeaning{0, 0, 0};
  }
  return meanings;
}

using Meanings = std::array<FlagMeaning, 256>;
inline constexpr Meanings kMeanings = make_meanings(0);
inline constexpr Meanings kMeaningsByAddress = make_meanings(kSpecialFlags);

/// Control word of a message. @return false if the card cannot take it; refusal() says why.
[[nodiscard, gnu::always_inline]] inline bool control_of(const Meanings& meanings,
                                                         uint32_t length_bytes, uint32_t mbox,
                                                         uint32_t flags, uint32_t* control) {
  const FlagMeaning& meaning = meanings[flags];
  const uint32_t mboxes =
      length_bytes > meaning.segment_bytes ? regs::kMultiMailboxes : regs::kMailboxes;
  *control = meaning.control | mbox << Control::mbox.lsb;
  return length_bytes - 1 < meaning.length_bytes_max && mbox < mboxes;
}

inline constexpr uint32_t kKeyMboxShift = 48;  ///< of the mailbox in a key

/// Header of a message by address. @return false if it is none, or the card cannot take it.
[[nodiscard]] inline bool header_of(const TxMessage& message, TxHeader* header) {
  uint32_t control = 0;
  if (!control_of(kMeaningsByAddress, message.length_bytes, 0, message.flags, &control)) {
    return false;
  }
  const bool several = message.length_bytes > kMeaningsByAddress[message.flags].segment_bytes;
  const uint64_t mboxes = several ? regs::kMultiMailboxes : regs::kMailboxes;
  const uint64_t mbox_mask = (mboxes - 1) << kKeyMboxShift;
  header->key = key_of(message) & ~(uint64_t{0xFF} << kKeyMboxShift);
  header->fixed = ~mbox_mask;
  header->control_dest = control | uint64_t{message.dest_id} << 32;
  header->length_bytes = message.length_bytes;
  return true;
}

}  // namespace rio::pmd::tx
