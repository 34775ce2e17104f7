/// @file
/// The rails of message ports, as running programs show them without DPDK (lib/msg/rail_page.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "lib/msg/rail_stats.hpp"

namespace rio::tool {

struct TopRail {
  std::string card;
  msg::RailStats stats;
  double sent_per_s = 0;
  double sent_bytes_per_s = 0;
  double received_per_s = 0;
  double received_bytes_per_s = 0;
};

/// A message port with several rails.
struct TopMessagePort {
  uint32_t pid = 0;
  uint32_t dest_id = 0;
  uint64_t time_ns = 0;  ///< of the counts, by the program
  std::vector<TopRail> rails;
};

/// Read the ports of all programs of this user. @param before of the last call: rates are against
/// it. A port whose program has written no counts since keeps its rates.
[[nodiscard]] std::vector<TopMessagePort> read_message_ports(
    const std::vector<TopMessagePort>& before);

[[nodiscard]] Json message_ports_json(const std::vector<TopMessagePort>& ports);
/// Tables; never a control character but line ends. @return empty: there is no port.
[[nodiscard]] std::string message_ports_text(const std::vector<TopMessagePort>& ports);

}  // namespace rio::tool
