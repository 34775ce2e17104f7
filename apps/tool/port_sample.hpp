/// @file
/// A card's counters at one moment, and their rates between two moments.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "pmd/dev/card.hpp"

namespace rio::tool {

/// A free-running 32-bit count.
struct Count {
  std::string name;  ///< "tx_packets", "qp0.tx.posted"
  uint32_t value = 0;
};

/// All counts of a card. One thread.
struct PortSample {
  std::chrono::steady_clock::time_point at;
  std::vector<Count> counts;  ///< the port's eight, then entries posted to each ring that runs
};

/// Look once. @return 0, -ENODEV (the card is gone), said on stderr.
[[nodiscard]] int take_sample(pmd::Card& card, PortSample* out);

/// By how much a count has grown a second, over a wrap; 0 where `before` has none of that name.
[[nodiscard]] double per_second(const PortSample& before, const PortSample& now,
                                const Count& count);

}  // namespace rio::tool
