#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

/// Counters of a ring, in the order of their numbers.
constexpr std::array<const char*, 7> kPerRing = {
    "messages", "bytes", "failed", "rejected", "bad_completions", "bar_writes", "bar_reads"};
constexpr unsigned kPortCount = 8;
static_assert(regs::port::rx_unmapped() - regs::port::tx_packets() == 4 * (kPortCount - 1));

/// A counter of the port; they come first, in the order of the register map.
const regs::names::RegName& port_counter(unsigned id) {
  static const auto* const kFirst =
      std::find_if(std::begin(regs::names::kRegisters), std::end(regs::names::kRegisters),
                   [](const auto& reg) { return reg.offset == regs::port::tx_packets(); });
  return kFirst[id];
}

constexpr auto kRingCount = static_cast<unsigned>(kPerRing.size());
constexpr unsigned kPerQueue = kRingCount * static_cast<unsigned>(kCountedRings.size());

unsigned count_of(const RawDevice& device) {
  return kPortCount + device.queue_pairs() * kPerQueue;
}

/// @param id below count_of().
std::string name_of(unsigned id) {
  if (id < kPortCount) {
    return std::string("port_") + port_counter(id).name;
  }
  id -= kPortCount;
  const unsigned within = id % kPerQueue;
  return "qp" + std::to_string(id / kPerQueue) + "_" + kCountedRings[within / kRingCount] + "_" +
         kPerRing[within % kRingCount];
}

uint64_t ring_value(const RingTotals& ring, unsigned which) {
  const uint64_t values[kRingCount] = {
      ring.stats.messages,        ring.stats.bytes, ring.stats.failed, ring.stats.rejected,
      ring.stats.bad_completions, ring.mmio.writes, ring.mmio.reads};
  return values[which];
}

/// The raw count of the card, or of this process's queues; xstats_reset() only moves the zero.
uint64_t raw_value(RawDevice& device, unsigned id) {
  if (id < kPortCount) {
    return device.bus().bar().read32(port_counter(id).offset);
  }
  id -= kPortCount;
  const unsigned within = id % kPerQueue;
  const QueueTotals totals = device.totals(id / kPerQueue);
  return ring_value(totals[within / kRingCount], within % kRingCount);
}

uint64_t value_of(RawDevice& device, unsigned id) {
  const uint64_t zero = id < device.xstats_zero.size() ? device.xstats_zero[id] : 0;
  const uint64_t value = raw_value(device, id) - zero;
  return id < kPortCount ? static_cast<uint32_t>(value) : value;  // free-running, 32 bits
}

}  // namespace

int xstats_get(const rte_rawdev* dev, const unsigned ids[], uint64_t values[], unsigned n) {
  return with_device(dev, [&](RawDevice& device) {
    unsigned done = 0;
    for (; done < n && ids[done] < count_of(device); ++done) {
      values[done] = value_of(device, ids[done]);
    }
    return done < n ? -EINVAL : static_cast<int>(done);
  });
}

int xstats_names(const rte_rawdev* dev, rte_rawdev_xstats_name* names, unsigned size) {
  return with_device(dev, [&](RawDevice& device) {
    const unsigned count = count_of(device);
    for (unsigned id = 0; names != nullptr && size >= count && id < count; ++id) {
      std::snprintf(names[id].name, sizeof(names[id].name), "%s", name_of(id).c_str());
    }
    return static_cast<int>(count);
  });
}

uint64_t xstats_by_name(const rte_rawdev* dev, const char* name, unsigned* id) {
  uint64_t value = 0;
  (void)with_device(dev, [&](RawDevice& device) {
    for (unsigned i = 0; name != nullptr && i < count_of(device); ++i) {
      if (name_of(i) == name) {
        *id = i;
        value = value_of(device, i);
        return 0;
      }
    }
    value = static_cast<uint64_t>(-EINVAL);  // what rte_rawdev_xstats_by_name_get documents
    return -EINVAL;
  });
  return value;
}

int xstats_reset(rte_rawdev* dev, const uint32_t ids[], uint32_t count) {
  return with_device(dev, [&](RawDevice& device) {
    const unsigned all = count_of(device);
    for (uint32_t i = 0; ids != nullptr && i < count; ++i) {
      if (ids[i] >= all) {
        return -EINVAL;
      }
    }
    device.xstats_zero.resize(all);
    const uint32_t n = ids != nullptr ? count : all;
    for (uint32_t i = 0; i < n; ++i) {
      const unsigned id = ids != nullptr ? ids[i] : i;
      device.xstats_zero[id] = raw_value(device, id);
    }
    return 0;
  });
}

}  // namespace rio::pmd
