/// @file
/// Counters and errors of a card and its port, decoded.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/maint_queue.hpp"

namespace rio::tool {

/// A free-running 32-bit count.
struct Count {
  std::string name;  ///< "tx_packets", "qp0.tx.posted", "qp0.barrier.sent"
  uint32_t value = 0;
};

/// All counts of a card. One thread.
struct PortSample {
  std::chrono::steady_clock::time_point at;
  /// The port's eight, entries posted to each ring that runs, and those of each barrier engine
  /// whose ring runs, or that has counted.
  std::vector<Count> counts;
};

/// Look once. @return 0, -ENODEV (the card is gone), said on stderr.
[[nodiscard]] int take_sample(pmd::Card& card, PortSample* out);

/// By how much a count has grown a second, over a wrap; 0 where `before` has none of that name.
[[nodiscard]] double per_second(const PortSample& before, const PortSample& now,
                                const Count& count);

/// One thing that is noted down somewhere.
struct CardError {
  std::string where;  ///< "logical layer", "port 0", "queue pair 0, ring tx", "counter tx_timeouts"
  std::string what;   ///< "packet with bad CRC"
  std::string code;   ///< register and bits, "0x000340: 0x00040000"
  [[nodiscard]] bool operator==(const CardError&) const = default;
};

/// Reads a CSR of the card. @return 0 or -errno.
using ReadCsr = std::function<int(uint32_t offset, uint32_t* word)>;

/// Read the errors that the BAR tells: rings that the card has stopped, error counters that are not
/// 0.
/// @return 0, -ENODEV (the card is gone), said on stderr.
[[nodiscard]] int read_card_errors(pmd::Card& card, std::vector<CardError>* out);

/// Read the standard error registers: error management (RIO Part 8 §2) and the port's error
/// and status CSR (RIO Part 6 §6), by local maintenance reads. Their places are found by the chain
/// of extended features, which is checked. @return 0, -EPROTO (the chain leads nowhere), or what
/// `read` returned; said on stderr.
[[nodiscard]] int read_error_registers(const ReadCsr& read, std::vector<CardError>* out);

/// Local maintenance reads. @param maint outlives the function.
[[nodiscard]] ReadCsr csr_reader(pmd::MaintQueue& maint);

/// An event for people.
[[nodiscard]] std::string event_text(const pmd::CardEvent& event);
[[nodiscard]] Json event_json(const pmd::CardEvent& event);
/// The JSON library finds it, and makes an array of a vector by it.
void to_json(Json& json, const CardError& finding);

}  // namespace rio::tool
