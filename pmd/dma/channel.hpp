/// @file
/// A virtual channel: operations in the user's order, on a DMA queue that all channels of a device
/// share.
#pragma once

#include <rte_dmadev.h>

#include <cstdint>
#include <vector>

#include "pmd/bus/counter.hpp"
#include "pmd/dev/dma_queue.hpp"

namespace rio::pmd {

/// Largest number of places in a scatter-gather list. Both sides have equally many.
inline constexpr uint16_t kDmaSegmentsMax = 16;

/// A channel's treatment of each operation.
struct DmaWay {
  regs::DmaOp op = regs::DmaOp::kNwriteR;
  uint32_t dest_id = 0;
  uint64_t rio_base = 0;  ///< ORed to the node's addresses: the key of a window onto our own memory
  uint8_t prio = 0;
  bool to_self = false;  ///< memory to memory
};

/// A channel; for one thread. An operation is a place on each side, or a list of them, and is cut
/// into requests of the card when its turn comes. Requests may end in any order; operations are
/// reported in the user's order.
class DmaChannel {
 public:
  /// @param slots outstanding operations: a power of two, at most 32768. @param caps of the card.
  DmaChannel(uint16_t number, const DmaWay& way, uint32_t slots, const Caps& caps);

  /// Hot. Accept a copy from one place to another. @return index of the operation; -ENOSPC;
  /// -EINVAL: not aligned.
  [[nodiscard]] int copy(rte_iova_t from, rte_iova_t to, uint32_t length_bytes, uint64_t flags) {
    if (next_ - told_ > mask_) [[unlikely]] {
      return -ENOSPC;
    }
    if (((from | to) & misaligned_) != 0 || (length_bytes & length_misaligned_) != 0) [[unlikely]] {
      return -EINVAL;
    }
    Operation& operation = operations_[next_ & mask_];
    operation = {
        {from, to, length_bytes}, 0, 0, 0, Status::kOk, (flags & RTE_DMA_OP_FLAG_FENCE) != 0};
    return taken(flags);
  }
  /// Accept a copy from a list to a list. @return as copy(); -EINVAL also if the sides differ in
  /// length, or there are too many places.
  [[nodiscard]] int copy_list(const rte_dma_sge* from, const rte_dma_sge* to, uint16_t from_count,
                              uint16_t to_count, uint64_t flags);
  /// Hot. Release all operations accepted so far to the card.
  void submit() {
    counts_.submitted.add(static_cast<uint16_t>(next_ - submitted_));
    submitted_ = next_;
  }
  /// Hot. Post requests of released operations while the queue has room.
  void post(DmaQueue& queue);
  /// Hot. Note that a request has ended. @param slot the lower half of its cookie.
  void ended(uint32_t slot, Status status) {
    Operation& operation = operations_[slot & mask_];
    operation.flying -= operation.flying == 0 ? 0 : 1;
    if (status != Status::kOk) [[unlikely]] {
      give_up(operation, status);
    }
  }
  /// The queue is lost: all operations that were released and have not ended fail.
  void fail(Status status);

  /// Hot. Report successful operations, in order. @param last index of the last operation ever
  /// reported. @param failed set if the next operation has failed.
  [[nodiscard]] uint16_t take_good(uint16_t n, uint16_t* last, bool* failed);
  /// Hot. Report operations that have ended, successful or not.
  [[nodiscard]] uint16_t take_all(uint16_t n, uint16_t* last, rte_dma_status_code* status);

  /// Hot. Postpone a submit() to the next submit_late().
  void put_off_submit() { late_ = true; }
  void submit_late() {
    if (late_) [[unlikely]] {
      late_ = false;
      submit();
    }
  }
  /// Index of the operation that was reported last, as take_good() returns it.
  [[nodiscard]] uint16_t last_told() const { return static_cast<uint16_t>(told_ - 1); }

  /// Number of operations that copy() would accept.
  [[nodiscard]] uint16_t room() const { return static_cast<uint16_t>(mask_ + 1 - (next_ - told_)); }
  /// Whether all released operations have ended.
  [[nodiscard]] bool idle();
  [[nodiscard]] const DmaWay& way() const { return way_; }
  /// Set the channel's destID after the card's has changed. The channel is idle.
  void set_dest_id(uint32_t dest_id) { way_.dest_id = dest_id; }
  [[nodiscard]] uint32_t slots() const { return mask_ + 1; }

  /// Counts since they were last reset. Any thread under control_lock(); values may lag behind a
  /// burst.
  [[nodiscard]] rte_dma_stats stats() const;
  void reset_stats();

 private:
  struct Counts {
    Counter submitted;
    Counter completed;
    Counter errors;
  };
  struct Place {
    rte_iova_t from;
    rte_iova_t to;
    uint32_t length_bytes;
  };
  struct Operation {
    Place now;        ///< rest of the place that is being posted
    uint16_t flying;  ///< outstanding requests
    uint16_t place;   ///< index of the next place, of a list
    uint16_t places;  ///< number of places, of a list
    Status status;
    bool fence;

    [[nodiscard]] bool posted() const { return now.length_bytes == 0 && place == places; }
  };
  static constexpr uint32_t kPlacesMax = 2 * kDmaSegmentsMax;
  static constexpr uint32_t kBurst = 32;

  [[nodiscard]] int taken(uint64_t flags) {
    const uint32_t index = next_++;
    if ((flags & RTE_DMA_OP_FLAG_SUBMIT) != 0) {
      submit();
    }
    return static_cast<uint16_t>(index);
  }
  static void give_up(Operation& operation, Status status) {
    operation.status = status;
    operation.now.length_bytes = 0;
    operation.place = operation.places;
  }
  /// Whether an operation has ended. @param index below begun_.
  [[nodiscard]] bool over(uint32_t index) const { return operations_[index & mask_].flying == 0; }
  [[nodiscard]] bool all_over_before_begun();
  [[nodiscard]] uint32_t cut(uint32_t index, DmaRequest* requests, uint32_t n);
  void next_place(uint32_t index);

  uint32_t mask_;
  uint32_t piece_bytes_max_;
  uint64_t misaligned_;         // bits that must be 0 in addresses
  uint32_t length_misaligned_;  // and in lengths
  DmaWay way_;
  uint64_t cookie_;  // number of the channel, in the upper half
  // Free-running: told_ <= over_ <= begun_ <= submitted_ <= next_.
  uint32_t next_ = 0;
  uint32_t submitted_ = 0;
  uint32_t begun_ = 0;  // all requests of earlier operations are posted
  uint32_t over_ = 0;   // earlier operations were found ended
  uint32_t told_ = 0;
  bool late_ = false;
  Counts counts_;
  rte_dma_stats zero_{};  // values at the last reset
  std::vector<Operation> operations_;
  std::vector<Place> places_;  // kPlacesMax for each operation; empty before the first list
};

[[nodiscard]] rte_dma_status_code dma_status_of(Status status);

}  // namespace rio::pmd
