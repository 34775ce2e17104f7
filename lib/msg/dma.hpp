/// @file
/// Reads and writes a peer's memory through the card's DMA queue.
#pragma once

#include <cstdint>

#include "base/fifo.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One read or write. The caller fills in the fields up to `user` and must not move the object
/// until on_done is called. After that nothing accesses the local memory any more.
struct DmaTransfer {
  uint64_t rio_addr = 0;  ///< RapidIO address; key in the top 16 bits
  uint8_t* va = nullptr;  ///< address of the local bytes
  /// The run of bus addresses that holds `va`, followed by the runs of the bytes behind it.
  const pmd::IovaRun* run = nullptr;
  uint64_t left_bytes = 0;  ///< length of the transfer, at least 1; counts down
  uint32_t dest_id = 0;
  regs::DmaOp op = regs::DmaOp::kNread;
  /// Called once, at the end; may start other transfers. Null: no notification.
  void (*on_done)(DmaTransfer& transfer) = nullptr;
  void* user = nullptr;

  /// kOk: success; kResponseTimeout if any request had none; else the first error.
  pmd::Status status = pmd::Status::kOk;

  // For the library only.
  uint64_t moved_bytes = 0;
  uint64_t wanted_bytes = 0;
  uint32_t flying = 0;  // requests posted to the card
  bool waits = false;   // waits for room in the ring
  base::FifoLinks<DmaTransfer> links{};
};

/// One per port; used only on the port's thread.
class Dma {
 public:
  /// @param endpoint has a DMA queue, and outlives this.
  explicit Dma(Endpoint& endpoint);
  Dma(const Dma&) = delete;
  Dma& operator=(const Dma&) = delete;

  /// Whether both addresses are aligned as the card requires.
  [[nodiscard]] bool takes(uint64_t rio_addr, const void* va) const {
    return ((rio_addr | reinterpret_cast<uintptr_t>(va)) & misaligned_) == 0;
  }
  /// Hot. Start a transfer: posts as much of it as the ring has room for.
  /// @pre takes() its addresses. @return false: gone(), on_done will not be called.
  [[nodiscard]] bool start(DmaTransfer& transfer);
  /// Hot. Process completions, then post waiting pieces.
  void progress();
  /// The card is gone: all transfers end with kLinkDown.
  void card_gone();
  /// Stop permanently: afterwards no transfer accesses memory. Transfers not carried out end with
  /// kFlushed, those in doubt with kResponseTimeout.
  /// @return false: the card did not stop, and nothing has changed.
  [[nodiscard]] bool stop();
  /// Whether start() refuses every transfer.
  [[nodiscard]] bool gone() const { return gone_; }

  [[nodiscard]] bool busy() const { return !under_way_.is_empty(); }

 private:
  static constexpr uint16_t kBurst = 16;

  [[nodiscard]] pmd::DmaRequest take_piece(DmaTransfer& transfer) const;
  [[nodiscard]] bool post(DmaTransfer& transfer);
  void reap();
  void end_all(pmd::Status status);
  void post_waiting();
  void on_piece_done(const pmd::EntryDone& done);
  void end(DmaTransfer& transfer);

  pmd::DmaQueue& queue_;
  uint64_t misaligned_;
  uint32_t length_bytes_max_;
  uint32_t waiting_ = 0;
  bool gone_ = false;
  base::Fifo<DmaTransfer, &DmaTransfer::links> under_way_;  // in the order of start()
};

}  // namespace rio::msg
