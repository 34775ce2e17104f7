/// @file
/// Two cards on a cable with the real driver on each, stepped by the test's own polling.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::test {

inline constexpr uint32_t kIds[2] = {0x11, 0x22};

class TwoCards {
 public:
  explicit TwoCards(const model::Config& config, uint32_t start_index = 0) {
    for (int s = 0; s < 2; ++s) {
      open(s, config, start_index);
    }
    step(600);  // the link comes up
  }
  void open(int s, const model::Config& config, uint32_t start_index) {
    bus[s] = std::make_unique<ModelBus>(config, cable->plug(s), &clock, 1000);
    ASSERT_TRUE(bus[s]->ok());
    pmd::CardConfig card_config;
    card_config.dest_ids = {kIds[s]};
    card_config.response_timeout_us = 2000;
    card_config.receive_timeout_us = 4000;
    ASSERT_EQ(pmd::Card::open(*bus[s], card_config, &card[s]), 0);
    pmd::QueuePairConfig rings;
    rings.start_index = start_index;
    ASSERT_EQ(card[s]->open_queue_pair(0, rings, &pair[s]), 0);
  }
  void close(int s) {
    pair[s].reset();
    card[s].reset();
    bus[s].reset();
  }
  pmd::DmaMemory memory(int s, size_t len_bytes, uint8_t value) {
    pmd::DmaMemory out;
    EXPECT_EQ(bus[s]->dma_alloc(len_bytes, 4096, &out), 0);
    std::memset(out.va, value, out.len_bytes);
    return out;
  }
  void step(int times = 1) {
    for (; times > 0; --times) {
      for (auto& b : bus) {
        if (b != nullptr) {
          b->poll_hook(0)();
        }
      }
    }
  }
  /// Polls until `n` messages are completed. @return their statuses.
  std::vector<pmd::TxDone> settle(int s, size_t n) {
    std::vector<pmd::TxDone> all;
    for (int i = 0; i < 100'000 && all.size() < n; ++i) {
      pmd::TxDone done[32];
      const uint16_t got = pair[s]->tx().reap(done, 32);
      all.insert(all.end(), done, done + got);
      step();
    }
    return all;
  }
  template <class Queue, class Done>
  std::vector<Done> reap(Queue& queue, size_t n) {
    std::vector<Done> all;
    for (int i = 0; i < 100'000 && all.size() < n; ++i) {
      Done done[32];
      const uint16_t got = queue.reap(done, 32);
      all.insert(all.end(), done, done + got);
      step();
    }
    return all;
  }

  ManualClock clock;
  std::shared_ptr<model::Cable> cable = model::make_cable();
  std::unique_ptr<ModelBus> bus[2];
  std::unique_ptr<pmd::Card> card[2];
  std::unique_ptr<pmd::QueuePair> pair[2];
};

}  // namespace rio::test
