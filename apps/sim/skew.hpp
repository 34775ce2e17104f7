/// @file
/// When the members of a barrier arrive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace rio::simapp {

enum class SkewKind : uint8_t { kNone, kUniform, kExponential, kOneLate };

/// How unevenly members arrive. Any thread.
struct Skew {
  /// Longest time that parse() accepts: an hour.
  static constexpr uint64_t kNsMax = 3'600'000'000'000;

  SkewKind kind = SkewKind::kNone;
  uint64_t ns = 0;  ///< of kUniform the range, of kExponential the mean, of kOneLate the delay

  /// Read "none", "uniform:NS", "exponential:NS" or "one-late:NS".
  /// @param out set only on success. @param error one line with the remedy; set only on failure.
  /// @return 0, -EINVAL.
  [[nodiscard]] static int parse(std::string_view text, Skew* out, std::string* error);
  /// The text that parse() reads.
  [[nodiscard]] std::string text() const;

  /// When each member arrives, in ns from the begin on. Exponential times are the same on every
  /// machine, as far as its C library rounds log() alike; they end at 40 times the mean.
  [[nodiscard]] std::vector<uint64_t> delays_ns(uint32_t members, base::Random& random) const;

  bool operator==(const Skew& other) const = default;
};

}  // namespace rio::simapp
