#include "pmd/dma/channel.hpp"

#include <algorithm>
#include <cerrno>

namespace rio::pmd {

using regs::DmaOp;

DmaChannel::DmaChannel(uint16_t number, const DmaWay& way, uint32_t slots, const Caps& caps)
    : mask_(slots - 1),
      piece_bytes_max_(caps.dma_bytes),
      misaligned_(caps.dma_addr_align - 1),
      length_misaligned_(0),
      way_(way),
      cookie_(uint64_t{number} << 32),
      operations_(slots) {
  if (way.op == DmaOp::kSwrite) {  // whole doublewords only. RIO Part 1 §3.1
    misaligned_ |= 7;
    length_misaligned_ = 7;
  }
}

int DmaChannel::copy_list(const rte_dma_sge* from, const rte_dma_sge* to, uint16_t from_count,
                          uint16_t to_count, uint64_t flags) {
  if (next_ - told_ > mask_) {
    return -ENOSPC;
  }
  if (from_count == 0 || to_count == 0 || from_count > kDmaSegmentsMax ||
      to_count > kDmaSegmentsMax) {
    return -EINVAL;
  }
  places_.resize(operations_.size() * kPlacesMax);
  Place* const places = &places_[(next_ & mask_) * kPlacesMax];
  uint32_t source = 0;
  uint32_t target = 0;
  uint32_t source_at = 0;
  uint32_t target_at = 0;
  uint16_t count = 0;
  while (source < from_count && target < to_count) {
    const uint32_t length =
        std::min(from[source].length - source_at, to[target].length - target_at);
    const Place place = {from[source].addr + source_at, to[target].addr + target_at, length};
    if (((place.from | place.to) & misaligned_) != 0 || (length & length_misaligned_) != 0) {
      return -EINVAL;
    }
    if (length != 0) {
      places[count++] = place;
    }
    source_at += length;
    target_at += length;
    if (source_at == from[source].length) {
      ++source;
      source_at = 0;
    }
    if (target < to_count && target_at == to[target].length) {
      ++target;
      target_at = 0;
    }
  }
  if (source != from_count || target != to_count) {
    return -EINVAL;
  }
  operations_[next_ & mask_] = {{0, 0, 0}, 0,           0,
                                count,     Status::kOk, (flags & RTE_DMA_OP_FLAG_FENCE) != 0};
  return taken(flags);
}

/// Goes to the next place of a list, once the place before is posted.
void DmaChannel::next_place(uint32_t index) {
  Operation& operation = operations_[index & mask_];
  if (operation.now.length_bytes == 0 && operation.place != operation.places) {
    operation.now = places_[(index & mask_) * kPlacesMax + operation.place++];
  }
}

/// Cuts the rest of an operation into at most `n` requests. @return how many.
uint32_t DmaChannel::cut(uint32_t index, DmaRequest* requests, uint32_t n) {
  Operation& operation = operations_[index & mask_];
  uint32_t count = 0;
  for (next_place(index); operation.now.length_bytes != 0 && count < n; next_place(index)) {
    Place& now = operation.now;
    const uint32_t length = std::min(now.length_bytes, piece_bytes_max_);
    const bool reads = way_.op == DmaOp::kNread;
    requests[count++] = {.rio_addr = (reads ? now.from : now.to) | way_.rio_base,
                         .iova = reads ? now.to : now.from,
                         .cookie = cookie_ | (index & mask_),
                         .dest_id = way_.dest_id,
                         .length_bytes = length,
                         .op = way_.op,
                         .prio = way_.prio};
    now = {now.from + length, now.to + length, now.length_bytes - length};
  }
  operation.flying = static_cast<uint16_t>(operation.flying + count);
  return count;
}

void DmaChannel::post(DmaQueue& queue) {
  bool full = false;
  while (begun_ != submitted_ && !full) {
    DmaRequest requests[kBurst];
    const uint32_t room = std::min<uint32_t>(queue.free_count(), kBurst);
    uint32_t n = 0;
    while (begun_ != submitted_) {
      const Operation& operation = operations_[begun_ & mask_];
      if (operation.fence && !all_over_before_begun()) {
        full = true;
        break;
      }
      n += cut(begun_, requests + n, room - n);
      if (!operation.posted()) {
        break;
      }
      ++begun_;
    }
    full |= n < kBurst;
    const uint32_t posted = n == 0 ? 0 : queue.post(requests, static_cast<uint16_t>(n));
    for (uint32_t i = posted; i < n; ++i) {
      ended(static_cast<uint32_t>(requests[i].cookie), Status::kBadDescriptor);
    }
  }
}

bool DmaChannel::all_over_before_begun() {
  while (over_ != begun_ && over(over_)) {
    ++over_;
  }
  return over_ == begun_;
}

bool DmaChannel::idle() {
  return begun_ == submitted_ && all_over_before_begun();
}

void DmaChannel::fail(Status status) {
  for (uint32_t index = told_; index != submitted_; ++index) {
    Operation& operation = operations_[index & mask_];
    if (operation.flying != 0 || !operation.posted()) {
      operation.flying = 0;
      give_up(operation, status);
    }
  }
  begun_ = submitted_;
}

uint16_t DmaChannel::take_good(uint16_t n, uint16_t* last, bool* failed) {
  uint16_t count = 0;
  for (; count < n && told_ != begun_ && over(told_); ++count, ++told_) {
    if (operations_[told_ & mask_].status != Status::kOk) [[unlikely]] {
      *failed = true;
      break;
    }
  }
  over_ = static_cast<int32_t>(over_ - told_) < 0 ? told_ : over_;
  counts_.completed.add(count);
  *last = static_cast<uint16_t>(told_ - 1);
  return count;
}

uint16_t DmaChannel::take_all(uint16_t n, uint16_t* last, rte_dma_status_code* status) {
  uint16_t count = 0;
  uint32_t errors = 0;
  for (; count < n && told_ != begun_ && over(told_); ++count, ++told_) {
    const Status one = operations_[told_ & mask_].status;
    status[count] = dma_status_of(one);
    errors += one != Status::kOk ? 1 : 0;
  }
  over_ = static_cast<int32_t>(over_ - told_) < 0 ? told_ : over_;
  counts_.completed.add(count);
  counts_.errors.add(errors);
  *last = static_cast<uint16_t>(told_ - 1);
  return count;
}

rte_dma_stats DmaChannel::stats() const {
  return {.submitted = counts_.submitted.get() - zero_.submitted,
          .completed = counts_.completed.get() - zero_.completed,
          .errors = counts_.errors.get() - zero_.errors};
}

void DmaChannel::reset_stats() {
  zero_ = {counts_.submitted.get(), counts_.completed.get(), counts_.errors.get()};
}

rte_dma_status_code dma_status_of(Status status) {
  switch (status) {
    case Status::kOk:
      return RTE_DMA_STATUS_SUCCESSFUL;
    case Status::kHostReadFailed:
      return RTE_DMA_STATUS_BUS_READ_ERROR;
    case Status::kErrorResponse:
      return RTE_DMA_STATUS_INVALID_ADDR;
    case Status::kBadDescriptor:
      return RTE_DMA_STATUS_INVALID_OPCODE;
    case Status::kFlushed:
      return RTE_DMA_STATUS_USER_ABORT;
    case Status::kLinkDown:
    case Status::kResponseTimeout:
    case Status::kRetryExpired:
      return RTE_DMA_STATUS_DEV_LINK_ERROR;
    default:
      return RTE_DMA_STATUS_ERROR_UNKNOWN;
  }
}

}  // namespace rio::pmd
