/// @file
/// Cuts a transfer through a dedicated queue into messages. Both sides cut alike: the receiver
/// derives the cut from its own address, and sends it with the grant. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rio::pmd::mem {

/// Bounced messages are padded to a multiple of this, since a card with [S0]'s quirk writes the
/// last segment as full 256 bytes.
inline constexpr uint32_t kLandingBytes = 256;
/// A bounce buffer, the longest message, and the page that [S0] aligns dedicated entries to.
inline constexpr uint32_t kMessagePage = 4096;

/// The alignments that the card takes, in bytes; from Caps. A card with a landing quirk has
/// dedicated_size 256, whatever its Caps say: align_rules() sees to that.
struct AlignRules {
  uint32_t tx_addr = 8;            ///< address of a message to send; power of two, 1 to 4096
  uint32_t dedicated_addr = 4096;  ///< address of a dedicated entry; power of two, 1 to 4096
  uint32_t dedicated_size = 256;   ///< size of a dedicated entry; power of two, 1 to 256
  uint32_t message_max = 4096;     ///< longest message; multiple of 256, 256 to 4096
};

/// Rules from a card's capabilities. @param landing_quirk the last segment lands at 256 * (n - 1)
/// or is written as full 256 bytes.
[[nodiscard]] constexpr AlignRules align_rules(uint32_t tx_addr, uint32_t dedicated_addr,
                                               uint32_t dedicated_size, bool landing_quirk) {
  AlignRules rules;
  rules.tx_addr = tx_addr;
  rules.dedicated_addr = dedicated_addr;
  rules.dedicated_size =
      landing_quirk && dedicated_size < kLandingBytes ? kLandingBytes : dedicated_size;
  return rules;
}

/// Check rules. @return 0, or -EINVAL for values outside of the ranges at AlignRules (this driver
/// cannot use the card for dedicated transfers).
[[nodiscard]] int check_rules(const AlignRules& rules);

/// A transfer as messages, in order: at most one head, the middle ones, at most one tail. Middle
/// messages have message_max bytes except the last of them. Head and tail are sent padded to a
/// multiple of 256, with whatever the sender may show; the middle is sent as it is.
struct Cut {
  uint32_t head_bytes = 0;         ///< 0: no head; below message_max
  uint32_t middle_messages = 0;    ///< how many
  uint32_t last_middle_bytes = 0;  ///< 0 without middle; multiple of 8, 8 to message_max
  uint32_t tail_bytes = 0;         ///< 0: no tail; below message_max

  bool operator==(const Cut&) const = default;
};

/// One message of a cut.
struct CutMessage {
  uint64_t offset_bytes;  ///< from the first byte of the transfer
  uint32_t len_bytes;     ///< bytes of the user, 1 to message_max
  uint32_t wire_bytes;    ///< length as sent and size of the receiver's entry; at least len_bytes
};

/// Length of the transfer in bytes.
[[nodiscard]] constexpr uint64_t cut_bytes(const Cut& cut, const AlignRules& rules) {
  const uint64_t full = cut.middle_messages > 0 ? cut.middle_messages - 1 : 0;
  return cut.head_bytes + full * rules.message_max + cut.last_middle_bytes + cut.tail_bytes;
}

/// Number of messages of the transfer; at most 2^32 + 1.
[[nodiscard]] constexpr uint64_t cut_messages(const Cut& cut) {
  return (cut.head_bytes != 0 ? 1u : 0u) + uint64_t{cut.middle_messages} +
         (cut.tail_bytes != 0 ? 1u : 0u);
}

/// Message `index` of a cut. @param index below cut_messages().
[[nodiscard]] CutMessage cut_message(const Cut& cut, const AlignRules& rules, uint64_t index);

/// Cut for a receiver whose memory the card can write: a head up to the first aligned address, a
/// middle of whole dedicated sizes, a tail of less than one. Without a middle it is
/// make_bounced_cut(). @param offset_bytes receiver's address modulo 4096. @param len_bytes 1 to
/// 2^39. @return 0, -EINVAL (rules, offset, length 0), -EFBIG.
[[nodiscard]] int make_cut(uint32_t offset_bytes, uint64_t len_bytes, const AlignRules& rules,
                           Cut* out);

/// Cut for a receiver that bounces everything: as few messages as possible. Errors as make_cut().
[[nodiscard]] int make_bounced_cut(uint64_t len_bytes, const AlignRules& rules, Cut* out);

/// Check a cut. @return 0, or -EPROTO: it contradicts itself, or does not have `len_bytes`.
[[nodiscard]] int check_cut(const Cut& cut, uint64_t len_bytes, const AlignRules& rules);

/// Bytes of an encoded cut: version 1 (u8), 0 (u8), head, last_middle, tail (u16 each),
/// middle_messages (u32), little-endian.
inline constexpr size_t kCutWireBytes = 12;

/// Encode a cut. @param cut one that check_cut() accepts.
void encode_cut(const Cut& cut, std::span<uint8_t, kCutWireBytes> out);

/// Read a peer's cut. @param bytes foreign, any length. @param len_max the longest transfer that
/// this side allows. @return 0, -EINVAL (rules), -EPROTO: not a cut, or longer than `len_max`.
[[nodiscard]] int decode_cut(std::span<const uint8_t> bytes, uint64_t len_max,
                             const AlignRules& rules, Cut* out);

}  // namespace rio::pmd::mem
