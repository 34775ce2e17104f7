/// @file
/// Takes what comes into a port's shared receive queue, checks it, and gives the buffers back.
#pragma once

#include <cstdint>

#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {

/// Part of a stream; hot.
class SharedSink {
 public:
  /// @param expected_flow who sends here, where messages are too short to say.
  SharedSink(const RunSetup& setup, TestPort& port, uint16_t expected_flow, Stream& owner)
      : queue_(port.pair().shared()),
        port_(port),
        pool_(setup.pool),
        verifier_(setup.verifier),
        owner_(owner),
        size_bytes_(setup.size_bytes),
        burst_(static_cast<uint16_t>(setup.options.burst)),
        expected_flow_(expected_flow) {}

  /// @return messages that came.
  uint32_t turn() noexcept;

 private:
  uint32_t check(const pmd::RxMessage* messages, uint32_t n) noexcept;

  pmd::SharedRxQueue& queue_;
  TestPort& port_;
  MessagePool& pool_;
  Verifier& verifier_;
  Stream& owner_;
  uint32_t size_bytes_;
  uint16_t burst_;
  uint16_t expected_flow_;
  pmd::RxMessage messages_[kBurstMax];
  pmd::RxBuffer buffers_[kBurstMax];
};

/// One received message: checked if the run verifies, its latency noted. Hot when verifying.
/// @return whether it counts as received.
inline bool take_message(const pmd::RxMessage& message, const uint8_t* bytes, uint16_t flow,
                         uint64_t now, Verifier& verifier, Stream& owner) {
  if (message.status != pmd::Status::kOk) [[unlikely]] {
    owner.stats.count_status(message.status);
    return false;
  }
  uint64_t stamp = 0;
  if (verifier.read(bytes, message.length_bytes, flow, &stamp) && stamp != 0 && now > stamp) {
    owner.latency.add(now - stamp);
  }
  return true;
}

}  // namespace rio::testpmd
