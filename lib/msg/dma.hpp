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
  bool waits = false;   // to be posted, or its rest: in Dma::waiting_
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
  /// Hot. Start a transfer in the next progress(), which posts several together. The conditions and
  /// the result are those of start().
  [[nodiscard]] bool start_soon(DmaTransfer& transfer);
  /// Hot. Post waiting pieces, and process completions.
  void progress();
  /// Hot. Whether progress() would end transfers, as far as the card has come.
  [[nodiscard]] bool has_done() const { return !gone_ && queue_.has_done(); }
  /// The card is gone: all transfers end with kLinkDown.
  void card_gone();
  /// Stop permanently: afterwards no transfer accesses memory. Transfers not carried out end with
  /// kFlushed, those in doubt with kResponseTimeout.
  /// @return false: the card did not stop, and nothing has changed.
  [[nodiscard]] bool stop();
  /// Whether start() refuses every transfer.
  [[nodiscard]] bool gone() const { return gone_; }

  [[nodiscard]] bool busy() const { return !posted_.is_empty() || !waiting_.is_empty(); }

 private:
  static constexpr uint16_t kBurst = 16;
  /// Bytes of one transfer under way after which the rest waits, so that it does not fill the ring
  /// and those behind it need not wait for its length. A card has enough to do with them.
  static constexpr uint64_t kUnderWayBytes = 4 << 20;

  /// Whether enough of a transfer is under way.
  [[nodiscard]] static bool has_enough(const DmaTransfer& transfer) {
    return transfer.flying != 0 &&
           transfer.wanted_bytes - transfer.left_bytes - transfer.moved_bytes >= kUnderWayBytes;
  }

  [[nodiscard]] pmd::DmaRequest take_piece(DmaTransfer& transfer) const;
  [[nodiscard]] bool begin(DmaTransfer& transfer) const;
  [[nodiscard]] uint16_t take_pieces(DmaTransfer& transfer, pmd::DmaRequest* out,
                                     uint16_t most) const;
  [[nodiscard]] bool post(DmaTransfer& transfer);
  void reap();
  void end_all(pmd::Status status);
  void post_waiting();
  void on_piece_done(const pmd::EntryDone& done);
  void end(DmaTransfer& transfer);

  pmd::DmaQueue& queue_;
  uint64_t misaligned_;
  uint32_t length_bytes_max_;
  bool gone_ = false;
  using Transfers = base::Fifo<DmaTransfer, &DmaTransfer::links>;
  Transfers posted_;  // whole, or enough of it
  // To be posted when there is room, in turn. Apart from `posted_`, so that progress() touches only
  // what can move.
  Transfers waiting_;
};

}  // namespace rio::msg
