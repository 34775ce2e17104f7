/// @file
/// The content of testpmd's messages, by which it knows them again: the flow (their sender), the
/// sequence number, the time of sending (TSC), and bytes that follow from all of these and a seed.
///
///   length      bytes 0 to 7                  bytes 8 to 15   then
///   1 to 7      low byte of the sequence      –               pattern, from byte 1
///   8 to 23     sequence, flow, check         –               pattern, from byte 8
///   24 and up   sequence, flow, check         TSC             pattern
///
/// The pattern depends on the TSC, so a wrong byte of that is found as well.
#pragma once

#include <cstdint>

namespace rio::testpmd {

/// The sender of a message, its number, and its time.
struct Tag {
  uint64_t sequence = 0;  ///< 40 bits count
  uint64_t stamp = 0;     ///< TSC; 0 below 24 bytes
  uint16_t flow = 0;      ///< 0 below 8 bytes
};

inline constexpr uint32_t kTagBytes = 8;     ///< shortest message that names its flow
inline constexpr uint32_t kStampBytes = 24;  ///< shortest message with a time
inline constexpr uint64_t kSequenceMask = (uint64_t{1} << 40) - 1;

/// Write a message. Hot when verifying. @param bytes len_bytes long, any alignment.
/// @param len_bytes 1 and up.
void fill_message(uint8_t* bytes, uint32_t len_bytes, uint64_t seed, const Tag& tag);

enum class Verdict : uint8_t {
  kGood,
  kTagBroken,      ///< the first 8 bytes are no tag
  kBytesBroken,    ///< a byte differs from the pattern
  kPaddingBroken,  ///< a byte between the length and the landed length is not zero
};

/// Read and check every byte. Hot when verifying. @param landed_bytes as the card said, at least
/// len_bytes: the rest must be zeros. @param expected next sequence number of the flow, which
/// completes a short message's single byte. @param tag set unless kTagBroken.
/// @param bad_offset first wrong byte, set unless kGood.
[[nodiscard]] Verdict check_message(const uint8_t* bytes, uint32_t len_bytes, uint32_t landed_bytes,
                                    uint64_t seed, uint64_t expected, Tag* tag,
                                    uint32_t* bad_offset);

/// The tag alone, without a look at the bytes. @param len_bytes as for fill_message().
/// @return false: no tag.
[[nodiscard]] bool read_tag(const uint8_t* bytes, uint32_t len_bytes, uint64_t expected, Tag* tag);

}  // namespace rio::testpmd
