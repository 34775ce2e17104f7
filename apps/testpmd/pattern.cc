#include "apps/testpmd/pattern.hpp"

#include <cstring>

#include "base/random.hpp"

namespace rio::testpmd {
namespace {

uint64_t pattern_base(uint64_t seed, const Tag& tag) {
  return base::mix64(base::mix64(base::mix64(seed + base::kRandomStep) ^
                                 (tag.sequence + (uint64_t{tag.flow} << 40))) ^
                     tag.stamp);
}

uint64_t encode(const Tag& tag) {
  const uint64_t low = (tag.sequence & kSequenceMask) | (uint64_t{tag.flow} << 40);
  return low | (base::mix64(low) & 0xFF) << 56;
}

/// Where the pattern begins.
uint32_t header_bytes(uint32_t len_bytes) {
  return len_bytes < kTagBytes ? 1 : len_bytes < kStampBytes ? kTagBytes : 2 * kTagBytes;
}

uint64_t load(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

void store(uint8_t* at, uint64_t word) {
  std::memcpy(at, &word, sizeof(word));
}

/// @return first byte of [from, len) that is wrong, or len.
uint32_t first_wrong(const uint8_t* bytes, uint32_t from, uint32_t len_bytes, uint64_t base) {
  uint32_t at = from;
  uint64_t word = base;
  for (; at + 8 <= len_bytes; at += 8, word += base::kRandomStep) {
    if (load(bytes + at) != word) {
      break;
    }
  }
  for (uint32_t end = at + 8 < len_bytes ? at + 8 : len_bytes; at < end; ++at, word >>= 8) {
    if (bytes[at] != static_cast<uint8_t>(word)) {
      break;
    }
  }
  return at;
}

}  // namespace

void fill_message(uint8_t* bytes, uint32_t len_bytes, uint64_t seed, const Tag& tag) {
  Tag sent = tag;
  sent.sequence &= kSequenceMask;
  if (len_bytes < kTagBytes) {
    sent.flow = 0;
    bytes[0] = static_cast<uint8_t>(sent.sequence);
  } else {
    store(bytes, encode(sent));
  }
  if (len_bytes < kStampBytes) {
    sent.stamp = 0;
  } else {
    store(bytes + kTagBytes, sent.stamp);
  }
  uint64_t word = pattern_base(seed, sent);
  uint32_t at = header_bytes(len_bytes);
  for (; at + 8 <= len_bytes; at += 8, word += base::kRandomStep) {
    store(bytes + at, word);
  }
  for (; at < len_bytes; ++at, word >>= 8) {
    bytes[at] = static_cast<uint8_t>(word);
  }
}

bool read_tag(const uint8_t* bytes, uint32_t len_bytes, uint64_t expected, Tag* tag) {
  if (len_bytes < kTagBytes) {
    // The number nearest to the expected one with this low byte.
    const auto ahead = static_cast<int8_t>(bytes[0] - static_cast<uint8_t>(expected));
    *tag = {.sequence = (expected + static_cast<uint64_t>(int64_t{ahead})) & kSequenceMask};
    return true;
  }
  const uint64_t word = load(bytes);
  const Tag read{.sequence = word & kSequenceMask,
                 .stamp = len_bytes < kStampBytes ? 0 : load(bytes + kTagBytes),
                 .flow = static_cast<uint16_t>(word >> 40)};
  if (encode(read) != word) {
    return false;
  }
  *tag = read;
  return true;
}

Verdict check_message(const uint8_t* bytes, uint32_t len_bytes, uint32_t landed_bytes,
                      uint64_t seed, uint64_t expected, Tag* tag, uint32_t* bad_offset) {
  if (!read_tag(bytes, len_bytes, expected, tag)) {
    *bad_offset = 0;
    return Verdict::kTagBroken;
  }
  const uint32_t wrong =
      first_wrong(bytes, header_bytes(len_bytes), len_bytes, pattern_base(seed, *tag));
  if (wrong < len_bytes) {
    *bad_offset = wrong;
    return Verdict::kBytesBroken;
  }
  for (uint32_t at = len_bytes; at < landed_bytes; ++at) {
    if (bytes[at] != 0) {
      *bad_offset = at;
      return Verdict::kPaddingBroken;
    }
  }
  return Verdict::kGood;
}

}  // namespace rio::testpmd
