/// @file
/// The driver's counters, summed over the queues of a port.
#pragma once

#include <cstdint>
#include <utility>

#include "pmd/dev/card.hpp"

namespace rio::testpmd {

class TestPort;

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

/// The counts by name, in the order of the JSON report.
inline constexpr std::pair<const char*, uint64_t DriverCounts::*> kDriverCounts[] = {
    {"bar_reads", &DriverCounts::bar_reads},
    {"bar_writes", &DriverCounts::bar_writes},
    {"tx_messages", &DriverCounts::tx_messages},
    {"tx_failed", &DriverCounts::tx_failed},
    {"rx_messages", &DriverCounts::rx_messages},
    {"rx_failed", &DriverCounts::rx_failed},
    {"rejected", &DriverCounts::rejected},
    {"bad_completions", &DriverCounts::bad_completions}};

/// Counts of a port, by the driver and by the card.
struct PortCounts {
  DriverCounts driver;
  pmd::PortCounters link{};
};

/// Since the port was started: queues that were closed meanwhile are in it.
[[nodiscard]] DriverCounts count_driver(const TestPort& port);
/// Since clear_counts(). Main thread.
[[nodiscard]] PortCounts count_port(const TestPort& port);
/// Count from zero from now on, here and in the xstats. Main thread. @return 0 or -errno.
[[nodiscard]] int clear_counts(TestPort& port);

}  // namespace rio::testpmd
