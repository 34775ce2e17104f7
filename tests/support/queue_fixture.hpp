/// @file
/// Fixture for tests of one queue: the queue on a bus without a card, and a strict mock BAR.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "pmd/bus/shared_ptr.hpp"
#include "pmd/dev/ring.hpp"
#include "tests/support/caps.hpp"
#include "tests/support/ring_script.hpp"

namespace rio::test {

using Bytes = std::vector<uint8_t>;
using Cookies = std::vector<uint64_t>;

/// @tparam Base ::testing::Test or TestWithParam.
template <class Queue, class Base = ::testing::Test>
class QueueFixture : public Base {
 protected:
  void TearDown() override { close(); }

  /// Closes an open queue, and starts one: the BAR expects the script's accesses only.
  void open_ring(const RingScript& script, const pmd::Caps& caps = full_caps(),
                 uint32_t timeout_ms = pmd::RingConfig{}.timeout_ms) {
    close();
    bus_ = std::make_unique<FakeBus>(&bar_);
    script_ = script;
    script_.expect_start(bar_);
    pmd::RingConfig config;
    config.ring = script.ring;
    config.log2 = script.log2;
    config.start_index = script.start;
    config.mbox = script.mbox;
    config.source = script.source;
    config.timeout_ms = timeout_ms;
    config.push = script.push_slots != 0;
    ASSERT_EQ(Queue::create(*bus_, caps, config, &queue_), 0);
    bar_.verify();
  }
  /// Closes the queue, if it is open: the BAR expects its stop only.
  void close() {
    bar_.verify();
    if (queue_ != nullptr) {
      script_.expect_stop(bar_);
      queue_.reset();
      bar_.verify();
      EXPECT_EQ(bus_->live_shared(), 0u);
    }
  }
  void expect_tail(uint32_t value) { bar_.expect_write(script_.tail_offset(), value); }
  /// Bytes of entry `index`, which wraps.
  [[nodiscard]] Bytes entry(uint32_t index) const {
    const uint8_t* const at = script_.entry(*bus_, index);
    return {at, at + script_.entry_bytes};
  }
  /// Writes a completion of 32-bit words; the last one gets its phase.
  void arrive_words(uint32_t at, std::vector<uint32_t> words) {
    words.back() = script_.last_word(at, words.back());
    std::memcpy(script_.completion(*bus_, at), words.data(), words.size() * sizeof words[0]);
  }
  /// Cookies of the results of `take(out, n)`.
  template <class Out, class Take>
  static Cookies cookies(uint16_t n, Take&& take) {
    std::vector<Out> got(n);
    got.resize(take(got.data(), n));
    Cookies all;
    for (const Out& one : got) {
      all.push_back(one.cookie);
    }
    return all;
  }

  MockBar bar_;
  std::unique_ptr<FakeBus> bus_;
  RingScript script_{};
  pmd::SharedPtr<Queue> queue_;
};

}  // namespace rio::test
