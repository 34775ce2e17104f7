/// @file
/// Counters that running programs report of their cards and queues, and their rates.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "apps/tool/telemetry_client.hpp"
#include "apps/tool/top_rails.hpp"

namespace rio::tool {

/// Counts of one ring of a queue pair (the dedicated ones together). All of a program's numbers are
/// what it claims.
struct TopRing {
  std::string name;
  uint64_t messages = 0;  ///< of the barrier ring: barriers that all members passed
  uint64_t bytes = 0;     ///< of the barrier ring: 0
  uint64_t failed = 0;
  uint64_t rejected = 0;
  uint64_t entries = 0;  ///< 0: has none, or is not open
  uint64_t fill = 0;     ///< posted and not come back; never above entries
  double messages_per_s = 0;
  double bytes_per_s = 0;
  double failed_per_s = 0;
};

struct TopQueue {
  uint64_t qp = 0;
  uint64_t owner_pid = 0;
  uint64_t dest_id = 0;
  std::vector<TopRing> rings;  ///< with a barrier ring only if the program has opened one
};

/// The port's counters, 32 bits, by name without "PORT/".
struct TopCounter {
  std::string name;
  uint32_t value = 0;
  double per_s = 0;
};

struct TopDevice {
  uint64_t id = 0;
  std::string name;
  std::string bus;
  bool link_up = false;
  bool gone = false;
  bool emulated = false;
  uint64_t lanes = 0;
  uint64_t lane_mbaud = 0;
  std::vector<TopCounter> counters;
  std::vector<TopQueue> queues;
};

struct TopProgram {
  TelemetrySocket socket;
  uint64_t pid = 0;
  std::string version;
  std::vector<TopDevice> devices;
  std::vector<std::string> problems;  ///< answers that made no sense
};

/// All programs at one moment.
struct TopData {
  std::chrono::steady_clock::time_point at;
  std::vector<TopProgram> programs;  ///< those with cards of ours, or with problems
  std::vector<TopMessagePort> message_ports;
};

/// Asks all programs, again and again. One thread.
class TopSource {
 public:
  explicit TopSource(std::string runtime_dir) : runtime_dir_(std::move(runtime_dir)) {}
  /// One round, of two seconds at most. Programs that have come are found, those that have gone are
  /// forgotten. A program has one second for all of its answers; those that were slow are asked
  /// last in the next round. Rates are against the last round.
  void ask(TopData* out);

 private:
  using Time = std::chrono::steady_clock::time_point;
  [[nodiscard]] bool ask_program(Time deadline, TopProgram* out);

  const std::string runtime_dir_;
  std::map<std::string, TelemetryClient> clients_;  // by path
  std::set<std::string> slow_;                      // paths
  TopData last_;
};

[[nodiscard]] Json top_json(const TopData& data);
/// Tables; never a control character but line ends.
[[nodiscard]] std::string top_text(const TopData& data);

}  // namespace rio::tool
