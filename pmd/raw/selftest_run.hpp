/// @file
/// What the selftest sends from one queue pair to another, and how it checks what came.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "pmd/raw/device.hpp"

namespace rio::pmd {

/// One end of a selftest: a queue pair of its own, with memory.
struct SelftestEnd {
  RawDevice* device = nullptr;
  uint32_t qp = 0;
  uint32_t dest_id = 0;
  std::unique_ptr<QueuePair> pair;
  DmaMemory memory;
};

/// Pages of SelftestEnd::memory by use.
struct SelftestPages {
  static constexpr uint32_t kTx = 0;  ///< messages to send
  static constexpr uint32_t kTxCount = 16;
  static constexpr uint32_t kShared = 16;  ///< buffers of the shared queue
  static constexpr uint32_t kSharedCount = 16;
  static constexpr uint32_t kDirect = 32;  ///< dedicated entries, window
  static constexpr uint32_t kDirectCount = 4;
  static constexpr uint32_t kAll = kDirect + kDirectCount;
};

/// Sends from one end to the other; they may be the same. One thread. Each part returns 0, -EIO
/// (wrong bytes or status, logged), -ETIMEDOUT (nothing moved for five seconds, logged).
class SelftestRun {
 public:
  SelftestRun(SelftestEnd& from, SelftestEnd& to) : from_(from), to_(to) {}

  /// Give the receiving end its buffers. Once for each end.
  [[nodiscard]] static int post_buffers(SelftestEnd& end);

  /// Every size from 1 to 4096 bytes through the shared queue, over mailboxes 0 to 3.
  [[nodiscard]] int sizes();
  /// Every inline size, over mailboxes 0 to 63.
  [[nodiscard]] int inline_sizes();
  [[nodiscard]] int doorbells();
  /// All eight dedicated queues, entries of 256 and 4096 bytes.
  [[nodiscard]] int dedicated();
  /// NWRITE_R into a window and NREAD back; nothing where the card has no DMA queue.
  [[nodiscard]] int remote_memory();

 private:
  [[nodiscard]] int exchange(const TxMessage* messages, uint32_t count);
  [[nodiscard]] int check(const RxMessage& message, const TxMessage* sent, uint32_t count);
  [[nodiscard]] int wait(const char* what, const std::function<int()>& poll);
  [[nodiscard]] int reap_tx(uint32_t count);
  [[nodiscard]] int dedicated_queue(uint32_t i);
  [[nodiscard]] int remote(regs::DmaOp op, uint64_t rio_addr, uint64_t iova);

  SelftestEnd& from_;
  SelftestEnd& to_;
  uint32_t in_doubt_ = 0;
};

}  // namespace rio::pmd
