/// @file
/// The key by which messages and receives match, and its hash.
#pragma once

#include <cstdint>

namespace rio::tag {

/// A receive that takes messages of any peer. No peer has this number.
inline constexpr uint32_t kAnySource = UINT32_MAX;

/// Source of messages whose sender is gone and whose address another process has now: only receives
/// from any source match them. No peer has this number.
inline constexpr uint32_t kFormerSource = UINT32_MAX - 1;

/// The messages that a receive or a probe asks for.
struct Pattern {
  uint64_t bits = 0;
  uint64_t ignore = 0;  // bits set here are not compared, as in libfabric
  uint32_t source = kAnySource;

  [[nodiscard]] bool matches(uint32_t from, uint64_t message_bits) const {
    return ((bits ^ message_bits) & ~ignore) == 0 && (source == from || source == kAnySource);
  }
};

/// Three secret words. A peer that does not know them cannot choose match bits that meet in one
/// bucket, so a peer that picks its tags cannot make look-ups long.
struct HashSeed {
  uint64_t for_bits = 0;
  uint64_t for_source = 0;
  uint64_t for_both = 0;  // odd

  /// From the kernel's random numbers. Control path. @return 0 or -errno.
  [[nodiscard]] static int draw(HashSeed* out);
};

/// Hot. The upper bits are to be used: of one multiplication alone, keys in arithmetic progression
/// make a few long chains now and then; of this, chains are as long as by chance.
[[nodiscard]] inline uint64_t key_hash(const HashSeed& seed, uint32_t source, uint64_t bits) {
  __extension__ using Product = unsigned __int128;
  const Product product = Product{bits ^ seed.for_bits} * (source ^ seed.for_source);
  const uint64_t folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return folded * seed.for_both;
}

}  // namespace rio::tag
