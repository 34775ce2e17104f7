/// @file
/// Reads and writes of the memory of peers, by the card's DMA queue.
#pragma once

#include <cstdint>

#include "lib/msg/queue_assigner.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One read or write. The caller that starts it fills in the first lines, and leaves it where it is
/// until it is told that all is over: then nothing reads or writes the memory any more.
struct DmaTransfer {
  uint64_t rio_addr = 0;  ///< RapidIO address; key in the top 16 bits
  uint8_t* va = nullptr;  ///< of the local bytes
  /// Where the card has them: the run that `va` is in, and those behind it, as far as they reach.
  const pmd::IovaRun* run = nullptr;
  uint64_t left_bytes = 0;  ///< at least 1
  uint32_t dest_id = 0;
  regs::DmaOp op = regs::DmaOp::kNread;
  /// May start others. Null: no caller is told.
  void (*on_done)(DmaTransfer& transfer) = nullptr;
  void* user = nullptr;

  /// The first that was not kOk.
  pmd::Status status = pmd::Status::kOk;

  // The library's.
  uint64_t moved_bytes = 0;
  uint64_t wanted_bytes = 0;
  uint32_t flying = 0;  // requests that the card has
  bool waits = false;   // for room in the ring
  Links<DmaTransfer> links;
};

/// Of one port; its thread.
class Dma {
 public:
  /// @param endpoint has the queue, and outlives this.
  explicit Dma(Endpoint& endpoint);
  Dma(const Dma&) = delete;
  Dma& operator=(const Dma&) = delete;

  /// Whether the card takes these addresses.
  [[nodiscard]] bool takes(uint64_t rio_addr, const void* va) const {
    return ((rio_addr | reinterpret_cast<uintptr_t>(va)) & misaligned_) == 0;
  }
  /// Hot. Posts it, as far as there is room.
  /// @pre takes() its addresses. @return false: gone(), on_done will not be called.
  [[nodiscard]] bool start(DmaTransfer& transfer);
  /// Hot. Looks at what the card has done, and posts what waits.
  void progress();
  /// The card will not do its work any more: all transfers end with kLinkDown.
  void card_gone();
  /// For good: no transfer that was started reads or writes memory afterwards. Transfers not
  /// carried out end with kFlushed, those in doubt with kResponseTimeout.
  /// @return whether the card has stopped; else nothing has changed.
  [[nodiscard]] bool stop();
  /// Nothing is taken any more.
  [[nodiscard]] bool gone() const { return gone_; }

  [[nodiscard]] bool busy() const { return !under_way_.empty(); }

 private:
  static constexpr uint16_t kBurst = 16;

  [[nodiscard]] pmd::DmaRequest take_piece(DmaTransfer& transfer) const;
  [[nodiscard]] bool post(DmaTransfer& transfer);
  void reap();
  void end_all(pmd::Status status);
  void post_waiting();
  void went_on(const pmd::EntryDone& done);
  void end(DmaTransfer& transfer);

  pmd::DmaQueue& queue_;
  uint64_t misaligned_;
  uint32_t length_bytes_max_;
  uint32_t waiting_ = 0;
  bool gone_ = false;
  LinkedList<DmaTransfer> under_way_;  // in the order of start()
};

}  // namespace rio::msg
