/// @file
/// Two emulated cards wired to each other, stepped by the thread that polls them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/mem/buffer_pool.hpp"

namespace rio::bench {

inline constexpr uint16_t kBurst = 32;
inline constexpr uint32_t kMailboxes = 64;  // with four letters each: 256 messages

/// One card and its queue pair. Members are in the order of their creation.
struct Port {
  std::unique_ptr<pmd::EmuBus> bus;
  std::unique_ptr<pmd::Card> card;
  std::unique_ptr<pmd::mem::BufferPool> pool;
  std::unique_ptr<pmd::QueuePair> pair;
  uint32_t dest_id = 0;
  uint32_t peer_id = 0;
  uint8_t next_mbox = 0;

  [[nodiscard]] pmd::TxQueue& tx() const { return pair->tx(); }
  [[nodiscard]] pmd::SharedRxQueue& shared() const { return pair->shared(); }
  /// Lets the card work once, as a burst does.
  void step() const { bus->poll_hook(0)(); }
  /// A message by address to the peer; the mailbox is the next one.
  [[nodiscard]] pmd::TxMessage message(uint64_t iova, uint64_t cookie, uint32_t length_bytes) {
    const uint8_t mbox = next_mbox;
    next_mbox = (next_mbox + 1) & (kMailboxes - 1);
    return {.iova = iova,
            .cookie = cookie,
            .dest_id = peer_id,
            .length_bytes = static_cast<uint16_t>(length_bytes),
            .mbox = mbox,
            .flags = 0};
  }
};

/// The cards "bench"/0 and "bench"/1, in push mode if they have it, with destIDs 1 and 2, full
/// shared queues and more buffers.
class EmulatedPair {
 public:
  static constexpr uint32_t kPosted = 256;   // as rio-testpmd
  static constexpr uint32_t kBuffers = 512;  // buffers in each pool
  static constexpr uint32_t kRingLog2 = 9;

  /// Ends the program on failure, since the benchmark cannot do anything else.
  /// @param barriers with their barrier rings.
  explicit EmulatedPair(const name::Model& model = {}, bool barriers = false);
  EmulatedPair(const EmulatedPair&) = delete;
  EmulatedPair& operator=(const EmulatedPair&) = delete;

  [[nodiscard]] Port& port(size_t i) { return ports_.at(i); }
  void step() const {
    ports_[0].step();
    ports_[1].step();
  }

  /// Receives the messages at port `i` and gives the buffers back. @return their number.
  uint32_t sink(size_t i);

 private:
  std::shared_ptr<pmd::EmuMemory> memory_;
  std::array<Port, 2> ports_;
};

/// Prints an error and ends the program.
[[noreturn]] void give_up(const char* what, int error);

}  // namespace rio::bench
