/// @file
/// Storms: two hosts work on each other over two rails in virtual time, while the rails are cut and
/// mended. The plan of a storm, its counts, and a run of several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "tests/soak/rail_cuts.hpp"

namespace rio::test {

struct StormPlan {
  uint64_t seed = 1;
  uint32_t items = 400;        ///< of work of each host, at least; more until all cuts are over
  uint32_t cuts = 6;           ///< how many times a rail is cut; 0: none
  uint32_t timeout_us = 1000;  ///< response time-out
};

/// Counts of one storm. An item is a message, or an access to the peer's memory.
struct StormResult {
  bool is_over = false;        ///< false: items were still under way at the end of the time
  uint64_t items = 0;          ///< that were done
  uint64_t lost = 0;           ///< items that were not done
  uint64_t wrong = 0;          ///< items that were done twice, or out of order
  uint64_t torn = 0;           ///< items after which other bytes were there
  uint64_t failed = 0;         ///< calls and completions with an error
  uint64_t sessions = 0;       ///< sessions that ended, or were cut off
  uint64_t silence_ns = 0;     ///< longest time in which nothing was done at a host that waited
  uint64_t silence_at_ns = 0;  ///< when it ended
  uint64_t longest_ns = 0;     ///< longest time of an item
  uint64_t moves = 0;          ///< times that a path was left
  uint64_t by_card = 0;        ///< accesses to memory by cards alone
  std::string log;             ///< of the cuts, for a report

  [[nodiscard]] uint64_t bad() const { return lost + wrong + torn + failed + sessions; }
  /// An item is done now. @param last_ns when the host's last one was done. @param begun_ns when
  /// this one began.
  void done(uint64_t now_ns, uint64_t last_ns, uint64_t begun_ns);
};

/// The common part of all storms. One thread.
class Storm {
 public:
  static constexpr uint32_t kHosts = RailCuts::kHosts;
  static constexpr uint32_t kRails = RailCuts::kRails;

  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 protected:
  explicit Storm(const StormPlan& plan);
  ~Storm() = default;

  [[nodiscard]] uint64_t below(uint64_t end) { return random_() % end; }
  /// When a host begins its next item: at once, or after a while.
  [[nodiscard]] uint64_t draw_next_ns();
  [[nodiscard]] bool has_all_cuts() const { return hosts_->now_ns() > end_ns_; }
  /// Find all paths, plan the cuts, and work until it is over. @param port of a host.
  /// @param turn as that of VirtualHosts::run().
  void run(const std::function<const msg::MessagePort&(uint32_t host)>& port,
           const std::function<uint32_t(uint32_t host)>& turn,
           const std::function<bool()>& is_over);

  const StormPlan plan_;
  std::mt19937_64 random_;
  StormResult result_;
  std::unique_ptr<VirtualHosts> hosts_;  // null: they cannot be made, as result_ says
  std::unique_ptr<RailCuts> cuts_;

 private:
  uint64_t end_ns_ = UINT64_MAX;  // of the cuts
};

/// Run RIO_SOAK_SEEDS storms (4) from seed RIO_SOAK_FIRST (1), and expect of each that all is done
/// right and that no host is silent for more than three response time-outs. Print a line about all,
/// and a report of each that is not so. @param items their name, for people.
/// @return items and accesses by cards of all.
StormResult run_storms(const char* items, const std::function<StormResult(const StormPlan&)>& run);

}  // namespace rio::test
