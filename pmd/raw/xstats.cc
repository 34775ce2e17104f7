#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kPortCount = 8;
static_assert(regs::port::rx_unmapped() - regs::port::tx_packets() == 4 * (kPortCount - 1));

struct Count {
  std::string name;
  uint64_t value;
  bool is_of_card = false;  // free-running, 32 bits
};

/// All counts since their last reset, by number: those of the card's port, in the order of the
/// register map, then for each queue pair those of this process's queues, and of its barrier
/// engine. xstats_reset() only moves the zero.
std::vector<Count> counts_of(RawDevice& device) {
  std::vector<Count> all;
  const auto* reg =
      std::find_if(std::begin(regs::names::kRegisters), std::end(regs::names::kRegisters),
                   [](const auto& one) { return one.offset == regs::port::tx_packets(); });
  for (; all.size() < kPortCount; ++reg) {
    all.push_back({std::string("port_") + reg->name, device.bus().bar().read32(reg->offset), true});
  }
  for (uint32_t qp = 0; qp < device.queue_pairs(); ++qp) {
    const QueueTotals totals = device.totals(qp);
    for (size_t i = 0; i < kCountedRings.size(); ++i) {
      const QueueStats& stats = totals[i].stats;
      const std::pair<const char*, uint64_t> of_ring[] = {
          {"messages", stats.messages},
          {"bytes", stats.bytes},
          {"failed", stats.failed},
          {"rejected", stats.rejected},
          {"bad_completions", stats.bad_completions},
          {"bar_writes", totals[i].mmio.writes},
          {"bar_reads", totals[i].mmio.reads}};
      const std::string prefix = "qp" + std::to_string(qp) + "_" + kCountedRings[i] + "_";
      for (const auto& [name, value] : of_ring) {
        all.push_back({prefix + name, value});
      }
    }
    if (Card* const card = device.card(); card != nullptr && card->blocks().has_barrier(qp)) {
      const BarrierCounters counters = card->barrier_counters(qp);
      const std::string prefix = "qp" + std::to_string(qp) + "_notices_";
      for (const auto& [name, value] : kBarrierCounterNames) {
        all.push_back({prefix + name, counters.*value, true});
      }
    }
  }
  device.xstats_zero.resize(all.size());
  for (size_t id = 0; id < all.size(); ++id) {
    const uint64_t value = all[id].value - device.xstats_zero[id];
    all[id].value = all[id].is_of_card ? static_cast<uint32_t>(value) : value;
  }
  return all;
}

}  // namespace

int xstats_get(const rte_rawdev* dev, const unsigned ids[], uint64_t values[], unsigned n) {
  return with_device(dev, [&](RawDevice& device) {
    const std::vector<Count> all = counts_of(device);
    unsigned done = 0;
    for (; done < n && ids[done] < all.size(); ++done) {
      values[done] = all[ids[done]].value;
    }
    return done < n ? -EINVAL : static_cast<int>(done);
  });
}

int xstats_names(const rte_rawdev* dev, rte_rawdev_xstats_name* names, unsigned size) {
  return with_device(dev, [&](RawDevice& device) {
    const std::vector<Count> all = counts_of(device);
    for (size_t id = 0; names != nullptr && size >= all.size() && id < all.size(); ++id) {
      std::snprintf(names[id].name, sizeof(names[id].name), "%s", all[id].name.c_str());
    }
    return static_cast<int>(all.size());
  });
}

uint64_t xstats_by_name(const rte_rawdev* dev, const char* name, unsigned* id) {
  uint64_t value = 0;
  (void)with_device(dev, [&](RawDevice& device) {
    const std::vector<Count> all = counts_of(device);
    const auto found = std::find_if(all.begin(), all.end(), [name](const Count& count) {
      return name != nullptr && count.name == name;
    });
    if (found == all.end()) {
      value = static_cast<uint64_t>(-EINVAL);  // what rte_rawdev_xstats_by_name_get documents
      return -EINVAL;
    }
    *id = static_cast<unsigned>(found - all.begin());
    value = found->value;
    return 0;
  });
  return value;
}

int xstats_reset(rte_rawdev* dev, const uint32_t ids[], uint32_t count) {
  return with_device(dev, [&](RawDevice& device) {
    std::vector<Count> all = counts_of(device);
    const auto n = ids != nullptr ? count : static_cast<uint32_t>(all.size());
    if (ids != nullptr &&
        std::any_of(ids, ids + n, [&](uint32_t id) { return id >= all.size(); })) {
      return -EINVAL;
    }
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t id = ids != nullptr ? ids[i] : i;
      device.xstats_zero[id] += std::exchange(all[id].value, 0);
    }
    return 0;
  });
}

}  // namespace rio::pmd
