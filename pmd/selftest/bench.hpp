/// @file
/// The bench that the steps of a selftest share: a card that is theirs. Internal to pmd/selftest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pmd/selftest/parts.hpp"
#include "pmd/selftest/selftest.hpp"

namespace rio::selftest {

/// A card, reset for each step, and its memory. Functions throw the fault that they find. One
/// thread.
class Bench {
 public:
  /// @param bus outlives the bench.
  Bench(pmd::Bus& bus, const Config& config, Progress progress);
  /// Memory that a card without answer may still write to stays allocated.
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  /// Begin a step, of which nothing is tried yet. @param step its name, a constant.
  void begin(const char* step);
  /// Reset the card, free of what an earlier step left.
  void reset();
  /// Something to do with an exchange of queue pair 0, open, with itself over a looped link.
  using Work = std::function<void(Exchange& exchange)>;
  /// Open queue pair 0, do `work`, and stop the rings. @param queues rings 0 means transmit,
  /// shared, doorbell, DMA, maintenance, events. @param need_link wait for the link, and fail
  /// without one.
  void loop(const Work& work, const pmd::QueuePairConfig& queues = {}, bool need_link = true);

  /// Wait for the port, which trains anew after a reset. @return whether it is up, or there is none
  /// to look at.
  [[nodiscard]] bool wait_link();

  [[nodiscard]] bool is_gone() const { return card_ != nullptr && card_->gone(); }
  /// The card, after reset().
  [[nodiscard]] pmd::Card& card() { return *card_; }
  [[nodiscard]] pmd::Bus& bus() { return bus_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const pmd::DmaMemory& memory() const { return memory_; }

  Tally tally;  ///< of the step that runs
  /// The result of the search for loop-back: empty if messages come back, else why not.
  std::string no_loop = "the loop-back was not looked for";

 private:
  pmd::Bus& bus_;
  const Config config_;
  const Progress progress_;
  std::unique_ptr<pmd::Card> card_;
  pmd::DmaMemory memory_;
  bool leave_memory_ = false;
};

inline constexpr const char* kGone = "the card is gone (its magic reads all ones)";

/// The verdict on a step that cannot be tried here.
[[nodiscard]] inline Verdict skip(std::string reason) {
  return {.outcome = Outcome::kSkipped, .reason = std::move(reason)};
}

// Steps of control_steps.cc. A step returns how it went, or throws the fault that it found, and
// leaves nothing open.
[[nodiscard]] Verdict test_registers(Bench& bench);
[[nodiscard]] Verdict test_rings(Bench& bench);
[[nodiscard]] Verdict test_link(Bench& bench);
[[nodiscard]] Verdict test_prbs(Bench& bench);
[[nodiscard]] Verdict test_maintenance(Bench& bench);
[[nodiscard]] Verdict test_interrupts(Bench& bench);

}  // namespace rio::selftest
