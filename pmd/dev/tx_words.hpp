/// @file
/// The words of a transmit descriptor, as they follow from the flags of a message.
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

/// Header of a message. @param meanings those of the flags that it may have. @return false: other
/// flags, or the card cannot take it.
[[nodiscard]] inline bool make_header(const Meanings& meanings, const TxMessage& message,
                                      TxHeader* header) {
  uint32_t control = 0;
  if (!control_of(meanings, message.length_bytes, 0, message.flags, &control)) {
    return false;
  }
  const bool several = message.length_bytes > meanings[message.flags].segment_bytes;
  const uint64_t mboxes = several ? regs::kMultiMailboxes : regs::kMailboxes;
  const uint64_t mbox_mask = (mboxes - 1) << kKeyMboxShift;
  header->key = key_of(message) & ~(uint64_t{0xFF} << kKeyMboxShift);
  header->fixed = ~mbox_mask;
  header->control_dest = control | uint64_t{message.dest_id} << 32;
  header->cookie_length = uint64_t{message.length_bytes} << 32;
  return true;
}

/// Header of a message by address. @return false: not by address, or the card cannot take it.
[[nodiscard]] inline bool header_of(const TxMessage& message, TxHeader* header) {
  return make_header(kMeaningsByAddress, message, header);
}

/// Header of an inline message in one unit. @param bytes_max most bytes of such a message. @return
/// false: another kind, longer, or the card cannot take it.
[[nodiscard]] inline bool inline_header_of(const TxMessage& message, uint32_t bytes_max,
                                           TxHeader* header) {
  if ((message.flags & kSpecialFlags) != TxFlags::kInline || message.length_bytes > bytes_max ||
      !make_header(kMeanings, message, header)) {
    return false;
  }
  header->control_dest |= Control::inline_.put(1);
  return true;
}

template <class Word>
[[nodiscard]] inline uint64_t load(const uint8_t* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

/// Load 1 to 8 bytes, padded with zeros, without reading further and without a call.
[[nodiscard]] inline uint64_t load_upto_8(const uint8_t* data, uint32_t length_bytes) {
  if (length_bytes >= 4) {  // two words, which may overlap
    return load<uint32_t>(data) |
           load<uint32_t>(data + length_bytes - 4) << 32 >> (8 * (8 - length_bytes));
  }
  const uint32_t half = length_bytes / 2;
  return load<uint8_t>(data) | load<uint8_t>(data + half) << (8 * half) |
         load<uint8_t>(data + length_bytes - 1) << (8 * (length_bytes - 1));
}

/// Load 1 to 16 bytes, padded with zeros.
[[gnu::always_inline]] inline void load_upto_16(const uint8_t* data, uint32_t length_bytes,
                                                uint64_t words[2]) {
  if (length_bytes > 8) [[likely]] {
    words[0] = load<uint64_t>(data);
    words[1] = load<uint64_t>(data + length_bytes - 8) >> (8 * (16 - length_bytes));
    return;
  }
  words[0] = load_upto_8(data, length_bytes);
  words[1] = 0;
}

}  // namespace rio::pmd::tx
