/// @file
/// The loop of the benchmarks of one queue of the driver, without a model.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "tests/bench/emulated_pair.hpp"
#include "tests/bench/timer.hpp"
#include "tests/support/plain_card.hpp"

namespace rio::bench {

inline constexpr uint32_t kRoundLog2 = 9;
inline constexpr uint32_t kRound = 1u << kRoundLog2;  ///< entries of the ring, all used in a round

/// Rounds of a ring full of entries, in bursts of state.range(0); the card's writes are not timed.
/// @tparam Cpl completion of the ring.
/// @param post (queue, first, burst) gives entries to the card; nullptr: the ring has none.
/// @param rest as for test::PlainCard::complete().
/// @param take (queue, first, burst) fetches completions. @return how many.
template <class Queue, class Cpl, class Post, class Rest, class Take>
void driver_rounds(benchmark::State& state, regs::Ring ring, Post post, Rest rest, Take take) {
  test::PlainCard card;
  pmd::SharedPtr<Queue> queue;
  if (const int rc =
          Queue::create(card, test::full_caps(),
                        {.ring = static_cast<uint32_t>(ring), .log2 = kRoundLog2}, &queue);
      rc != 0) {
    give_up("creating the queue", rc);
  }
  card.ready();
  const auto burst = static_cast<uint16_t>(state.range(0));
  Timer timer(state);
  uint32_t index = 0;
  for (auto _ : state) {
    if constexpr (!std::is_null_pointer_v<Post>) {
      timer.start();
      for (uint32_t i = 0; i < kRound; i += burst) {
        benchmark::DoNotOptimize(post(*queue, i, burst));
      }
      timer.stop();
    }
    card.complete<Cpl>(ring, index, kRound, rest);
    index += kRound;
    uint32_t n = 0;
    timer.start();
    for (uint32_t i = 0; i < kRound; i += burst) {
      n += take(*queue, i, burst);
    }
    timer.stop();
    if (n != kRound) {
      state.SkipWithError("not all entries completed");
      break;
    }
    timer.done(kRound);
  }
  card.stopping();
}

}  // namespace rio::bench
