/// @file
/// What the driver has counted, summed over the queues of a port. Read while nobody polls.
#pragma once

#include <cstdint>

#include "apps/testpmd/port.hpp"

namespace rio::testpmd {

struct DriverCounts {
  uint64_t bar_reads = 0;
  uint64_t bar_writes = 0;
  uint64_t tx_messages = 0;
  uint64_t tx_failed = 0;
  uint64_t rx_messages = 0;
  uint64_t rx_failed = 0;
  uint64_t rejected = 0;
  uint64_t bad_completions = 0;

  DriverCounts& operator+=(const DriverCounts& other);
  [[nodiscard]] DriverCounts since(const DriverCounts& before) const;
};

[[nodiscard]] DriverCounts count_driver(const Port& port);

}  // namespace rio::testpmd
