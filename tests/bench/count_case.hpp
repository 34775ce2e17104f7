/// @file
/// The traffic that the count program repeats: rounds of bursts on two emulated cards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tests/bench/emulated_pair.hpp"

namespace rio::bench {

/// The BAR accesses of all calls of the driver, and the most that one call made.
struct BarWatch {
  uint64_t reads_max = 0;
  uint64_t writes_max = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;

  /// @param call a burst of `queue`, which is its argument. @return the result of the call.
  template <class Queue, class Call>
  auto operator()(Queue& queue, Call&& call) {
    const pmd::MmioCounts before = queue.mmio();
    const auto result = call(queue);
    const pmd::MmioCounts after = queue.mmio();
    reads_max = std::max(reads_max, after.reads - before.reads);
    writes_max = std::max(writes_max, after.writes - before.writes);
    reads += after.reads - before.reads;
    writes += after.writes - before.writes;
    return result;
  }
};

/// Only makes the calls: for counting instructions.
struct NoWatch {
  uint64_t reads_max = 0;
  uint64_t writes_max = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;

  template <class Queue, class Call>
  auto operator()(Queue& queue, Call&& call) {
    return call(queue);
  }
};

/// One kind of traffic.
class CountCase {
 public:
  virtual ~CountCase() = default;
  /// Makes one round. It ends the program if a result is not as expected.
  virtual void round() = 0;
  /// Messages, doorbells, requests or barriers of a member that arrived since the object was made.
  [[nodiscard]] virtual uint64_t messages() const = 0;
  [[nodiscard]] virtual uint64_t bar_reads_max() const = 0;
  [[nodiscard]] virtual uint64_t bar_writes_max() const = 0;
  [[nodiscard]] virtual uint64_t bar_reads() const = 0;
  [[nodiscard]] virtual uint64_t bar_writes() const = 0;
};

/// @param name forward, send_inline, one and one_inline (single messages), dedicated, doorbell,
/// dma, barrier (started by a slot) or barrier_ring (posted). @param watch counts BAR accesses.
/// @return null for another name.
[[nodiscard]] std::unique_ptr<CountCase> make_case(std::string_view name, bool watch,
                                                   uint32_t size_bytes, uint16_t burst);

}  // namespace rio::bench
