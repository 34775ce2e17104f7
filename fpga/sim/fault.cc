#include "fpga/sim/fault.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "base/random.hpp"

namespace rio::sim {

std::vector<NetworkFault> random_faults(const NetworkTopology& topology, FaultKind kind,
                                        uint32_t count, uint64_t first_ns, uint64_t last_ns,
                                        uint64_t seed) {
  assert(first_ns <= last_ns && last_ns - first_ns < UINT32_MAX);
  const bool is_device = kind == FaultKind::kDeviceDown || kind == FaultKind::kDeviceUp;
  std::vector<uint32_t> targets;
  for (uint32_t i = 0; i < (is_device ? topology.nodes() : topology.links()); ++i) {
    if (is_device || topology.has_link(i)) {
      targets.push_back(i);
    }
  }
  base::Random random(seed);
  const auto range = static_cast<uint32_t>(last_ns - first_ns + 1);
  std::vector<NetworkFault> faults;
  for (uint32_t i = 0; i < count && i < targets.size(); ++i) {
    const auto left = static_cast<uint32_t>(targets.size() - i);
    std::swap(targets[i], targets[i + random.below(left)]);
    faults.push_back({first_ns + random.below(range), kind, targets[i]});
  }
  const auto order = [](const NetworkFault& fault) {
    return std::tuple(fault.at_ns, fault.target);
  };
  std::sort(faults.begin(), faults.end(),
            [&](const NetworkFault& a, const NetworkFault& b) { return order(a) < order(b); });
  return faults;
}

}  // namespace rio::sim
