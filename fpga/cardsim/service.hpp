/// @file
/// The service loop of rio-cardsim.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "fpga/cardsim/sim_card.hpp"

namespace rio::cardsim {

/// Requests to the loop; a signal handler may write them.
struct Requests {
  std::atomic<int> stop{0};       ///< the signal that asked for the end; 0: none
  std::atomic<int> stop_from{0};  ///< the process that sent it; written before `stop`
  std::atomic<bool> lose_state{false};
  std::atomic<bool> vanish{false};
  std::atomic<bool> reload{false};
};

struct LoopCounts {
  uint64_t looks = 0;                          ///< checks, each after some turns
  std::chrono::microseconds longest_pause{0};  ///< between two checks: asleep, or without the CPU
};

/// Steps cards and serves their peers: spins while there is work, else sleeps for up to 1 ms at a
/// time.
class Service {
 public:
  /// @param cards, requests outlive the object. @param reload called for Requests::reload.
  Service(std::vector<std::unique_ptr<SimCard>>& cards, Requests& requests,
          std::function<void()> reload);

  /// Run until a stop is asked for, `seconds` are over (0: for ever), or all peers have left
  /// (unless `stay`). @param why which of these, as the report has it: "signal", "seconds" or
  /// "peers left"; set only on success. @return 0, or -errno, reported on stderr.
  [[nodiscard]] int run(uint32_t seconds, bool stay, const char** why);
  [[nodiscard]] const LoopCounts& counts() const { return counts_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void turn();
  void obey();
  [[nodiscard]] bool idle(Time now);
  [[nodiscard]] bool rest(Time now);

  std::vector<std::unique_ptr<SimCard>>& cards_;
  Requests& requests_;
  const std::function<void()> reload_;
  std::vector<uint64_t> done_;  // work of each card at the last check
  Time looked_at_;              // time of the last check of the cards
  Time moved_at_;               // when a card last did something
  Time busy_at_;                // when there was last something to do
  std::vector<pollfd> fds_;
  LoopCounts counts_;
};

}  // namespace rio::cardsim
