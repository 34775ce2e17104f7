/// @file
/// The loop of rio-cardsim.
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
  std::atomic<int> stop{0};       ///< the signal that asked for it; 0: none has
  std::atomic<int> stop_from{0};  ///< the process that sent it, written before `stop`
  std::atomic<bool> lose_state{false};
  std::atomic<bool> vanish{false};
  std::atomic<bool> reload{false};
};

/// Why the loop ended.
enum class End : uint8_t { kSignal, kSeconds, kPeersLeft };

/// How the loop ran.
struct LoopCounts {
  uint64_t looks = 0;                          ///< each of some turns
  std::chrono::microseconds longest_pause{0};  ///< between two looks: asleep, or kept from the CPU
};

/// Steps cards and looks after their peers: hot while there is work, asleep for up to 1 ms at a
/// time when there is none.
class Service {
 public:
  /// @param cards, requests outlive the object. @param reload what Requests::reload asks for.
  Service(std::vector<std::unique_ptr<SimCard>>& cards, Requests& requests,
          std::function<void()> reload);

  /// Until a stop is asked for, `seconds` are over (0: for ever), or all peers have left (unless
  /// `stay`). @return 0, or -errno, told on stderr.
  [[nodiscard]] int run(uint32_t seconds, bool stay, End* out);
  [[nodiscard]] const LoopCounts& counts() const { return counts_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void turn();
  void obey();
  void count_look(Time now);
  [[nodiscard]] bool all_left() const;
  [[nodiscard]] bool idle(Time now);
  [[nodiscard]] bool rest(Time now);
  [[nodiscard]] bool sleep(std::chrono::microseconds time);
  [[nodiscard]] int serve();

  std::vector<std::unique_ptr<SimCard>>& cards_;
  Requests& requests_;
  const std::function<void()> reload_;
  std::vector<uint64_t> done_;  // of each card, when last looked at
  Time looked_at_;              // when cards were looked at last
  Time moved_at_;               // when a card did something last
  Time busy_at_;                // when there was something to do last
  std::vector<pollfd> fds_;
  LoopCounts counts_;
};

}  // namespace rio::cardsim
