/// @file
/// Selftest of a card: the steps, and what they run on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "apps/tool/selftest_report.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"

namespace rio::tool {

/// The user's choices.
struct SelftestConfig {
  bool quick = false;
  uint64_t seed = 1;
  uint32_t dest_id = 0x100;  ///< of queue pair 0, while the test runs
  bool must_loop = false;    ///< a link that does not come back to the card is a failure
  bool has_peer = false;
  uint32_t peer = 0;             ///< destID that messages go to, if has_peer
  uint32_t patience_ms = 10000;  ///< nothing moves for so long: the step fails
  uint32_t link_timeout_ms = 3000;
};

/// Told now and then how far a step is. @param step name; @param done, total things tried; total 0
/// before it is known.
using Progress = std::function<void(const char* step, uint64_t done, uint64_t total)>;

/// The bench that the steps share: the card, memory, waiting. One thread.
class SelftestBench {
 public:
  static constexpr uint32_t kPageBytes = 4096;
  static constexpr uint32_t kTxPage = 0;  ///< what is sent; 2 pages
  static constexpr uint32_t kRxPage = 2;  ///< where it lands; 2 pages
  static constexpr uint32_t kBurstLog2 = 6;
  static constexpr uint32_t kBurstEntries = 1u << kBurstLog2;  ///< of the rings of test_bursts()
  static constexpr uint32_t kBurstTxPage = 4;                  ///< what it sends
  static constexpr uint32_t kBurstTxPages = 8;
  static constexpr uint32_t kBurstRxPage = kBurstTxPage + kBurstTxPages;  ///< a page for each
  static constexpr uint32_t kPages = kBurstRxPage + kBurstEntries;

  /// @param bus outlives the bench.
  SelftestBench(pmd::Bus& bus, const SelftestConfig& config, Progress progress);
  /// Memory that a card without answer may still write to stays allocated.
  ~SelftestBench();
  SelftestBench(const SelftestBench&) = delete;
  SelftestBench& operator=(const SelftestBench&) = delete;

  /// Reset the card, free of what an earlier step left. @return what is wrong, or empty.
  [[nodiscard]] std::string reset();
  /// Start rings of queue pair 0, and of no other. @return what is wrong, or empty.
  [[nodiscard]] std::string open(const pmd::QueuePairConfig& queues,
                                 std::unique_ptr<pmd::QueuePair>* out);
  /// Stop them. @return what is wrong, or empty.
  [[nodiscard]] std::string close(std::unique_ptr<pmd::QueuePair> pair);

  /// Calls `poll` until it returns true or says what is `wrong`, and lets the card work.
  /// @return what is wrong: what poll said, or that `what` did not come, or that the card is gone.
  [[nodiscard]] std::string wait(const std::string& what,
                                 const std::function<bool(std::string* wrong)>& poll);
  /// Wait for the port, which trains anew after a reset. @return whether it is up, or there is none
  /// to look at.
  [[nodiscard]] bool wait_link();
  void tell(const char* step, uint64_t done, uint64_t total);

  [[nodiscard]] pmd::Card& card() { return *card_; }
  [[nodiscard]] pmd::Bus& bus() { return bus_; }
  [[nodiscard]] const SelftestConfig& config() const { return config_; }
  [[nodiscard]] uint8_t* va(uint32_t page) const;
  [[nodiscard]] uint64_t iova(uint32_t page) const;
  /// Byte `at` of the thing number `number`, by the seed.
  [[nodiscard]] uint8_t byte(uint64_t number, uint32_t at) const;
  void fill(uint8_t* bytes, uint32_t len_bytes, uint64_t number) const;

  /// The result of the search for loop-back: empty if messages come back, else why not.
  std::string no_loop = "the loop-back was not looked for";
  bool gone = false;  ///< the card has gone; nothing more is tried

 private:
  pmd::Bus& bus_;
  const SelftestConfig config_;
  const Progress progress_;
  std::unique_ptr<pmd::Card> card_;
  pmd::DmaMemory memory_;
  bool leave_memory_ = false;
};

/// A step. `run` returns how it went; it leaves nothing open.
struct SelftestStep {
  const char* name;
  const char* help;
  Verdict (*run)(SelftestBench& bench);
};

// The steps, by what they are about.
[[nodiscard]] Verdict test_registers(SelftestBench& bench);
[[nodiscard]] Verdict test_rings(SelftestBench& bench);
[[nodiscard]] Verdict test_link(SelftestBench& bench);
[[nodiscard]] Verdict test_prbs(SelftestBench& bench);
[[nodiscard]] Verdict test_loop(SelftestBench& bench);
[[nodiscard]] Verdict test_doorbells(SelftestBench& bench);
[[nodiscard]] Verdict test_inline(SelftestBench& bench);
[[nodiscard]] Verdict test_messages(SelftestBench& bench);
[[nodiscard]] Verdict test_bursts(SelftestBench& bench);
[[nodiscard]] Verdict test_segments(SelftestBench& bench);
[[nodiscard]] Verdict test_dedicated(SelftestBench& bench);
[[nodiscard]] Verdict test_memory(SelftestBench& bench);
[[nodiscard]] Verdict test_atomics(SelftestBench& bench);
[[nodiscard]] Verdict test_maintenance(SelftestBench& bench);
[[nodiscard]] Verdict test_interrupts(SelftestBench& bench);
[[nodiscard]] Verdict test_peer(SelftestBench& bench);

/// All steps, in their order.
[[nodiscard]] std::span<const SelftestStep> selftest_steps();

/// Run all steps. The card is the test's: it is reset. @return the report; each step is in it.
[[nodiscard]] SelftestReport run_selftest(pmd::Bus& bus, const SelftestConfig& config,
                                          const Progress& progress);

}  // namespace rio::tool
