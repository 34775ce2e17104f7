/// @file
/// Messages of an Endpoint to itself, as many as its queues take.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "pmd/api/riopmd.hpp"

namespace rio::test {

/// Traffic of a card that is wired to itself. One thread.
class LoopTraffic {
 public:
  static constexpr uint32_t kBuffers = 64;
  static constexpr uint32_t kDestId = 5;
  static constexpr uint32_t kPatienceMs = 60'000;

  /// For Endpoint::open().
  [[nodiscard]] static EndpointConfig config() {
    EndpointConfig config;
    config.dest_id = kDestId;
    config.message_buffers = kBuffers;
    // The thread that steps the card may wait long for a CPU.
    config.card.reset_timeout_ms = kPatienceMs;
    config.queues.stop_timeout_ms = kPatienceMs;
    return config;
  }
  explicit LoopTraffic(Endpoint& card) : card_(card) {
    uint32_t index[kBuffers];
    if (card.buffers()->get(index, kBuffers) != kBuffers) {
      std::abort();
    }
    own_ = card.buffers()->iova(index[0]);
    for (uint32_t i = 1; i < kBuffers; ++i) {
      const pmd::RxBuffer empty{card.buffers()->iova(index[i]), card.buffers()->iova(index[i])};
      (void)card.shared().post(&empty, 1);
    }
  }
  /// One round of bursts.
  void poll() {
    pmd::TxMessage message{};
    message.iova = own_;
    message.dest_id = kDestId;
    message.length_bytes = 256;
    pmd::TxDone done;
    pmd::RxMessage got{};
    (void)card_.tx().burst(&message, 1);
    while (card_.tx().reap(&done, 1) == 1) {
    }
    while (card_.shared().burst(&got, 1) == 1) {
      const pmd::RxBuffer empty{got.cookie, got.cookie};
      (void)card_.shared().post(&empty, 1);
      received_ += got.status == pmd::Status::kOk ? 1 : 0;
    }
  }
  /// Messages that came. Any thread.
  [[nodiscard]] uint64_t received() const { return received_; }

 private:
  Endpoint& card_;
  uint64_t own_ = 0;
  std::atomic<uint64_t> received_ = 0;
};

}  // namespace rio::test
