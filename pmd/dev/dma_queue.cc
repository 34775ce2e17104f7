#include "pmd/dev/dma_queue.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "pmd/dev/reap.hpp"

namespace rio::pmd {
namespace {

using Control = regs::dma_desc::Control;
using regs::DmaOp;

constexpr uint32_t kPrioMax = 2;
constexpr uint32_t kDoublewordBytes = 8;

}  // namespace

int DmaQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                     SharedPtr<DmaQueue>* out) {
  if (!caps.dma) {
    base::log_error("%s: the card has no DMA queues; leave the DMA ring out", bus.name().c_str());
    return -ENOTSUP;
  }
  return make_queue(bus, out, [&](DmaQueue& queue) {
    queue.addr_misaligned_ = caps.dma_addr_align - 1;
    queue.length_bytes_max_ = caps.dma_bytes;
    queue.atomics_ = caps.atomics;
    return queue.start<regs::EntryCpl>(bus, caps, config, &queue.entries_);
  });
}

Reject DmaQueue::check(const DmaRequest& request) const {
  const bool atomic = request.op >= DmaOp::kAtomicInc;
  if (request.op > DmaOp::kAtomicCswap || (atomic && !atomics_) || request.prio > kPrioMax) {
    return Reject::kOperation;
  }
  const uint32_t length_bytes = request.length_bytes;
  uint64_t misaligned = addr_misaligned_;
  if (atomic) {
    if (length_bytes != 1 && length_bytes != 2 && length_bytes != 4) {
      return Reject::kLength;
    }
    misaligned |= length_bytes - 1;  // an atomic stays within one word. RIO Part 1 §3.1
  } else if (length_bytes - 1 >= length_bytes_max_) {
    return Reject::kLength;
  }
  if (request.op == DmaOp::kSwrite) {  // only whole doublewords. RIO Part 1 §3.1
    if (length_bytes % kDoublewordBytes != 0) {
      return Reject::kLength;
    }
    misaligned |= kDoublewordBytes - 1;
  }
  return ((request.rio_addr | request.iova) & misaligned) != 0 ? Reject::kAlignment : Reject::kNone;
}

uint16_t DmaQueue::post(const DmaRequest* requests, uint16_t n) {
  begin_post();
  const uint32_t count = std::min<uint32_t>(n, window_.room());
  const uint32_t head = window_.head();
  uint32_t k = 0;
  for (; k < count; ++k) {
    const DmaRequest& request = requests[k];
    if (const Reject why = check(request); why != Reject::kNone) [[unlikely]] {
      refuse(why);
      break;
    }
    const uint32_t slot = (head + k) & window_.mask();
    entries_[slot] = {
        Control::op.put(static_cast<uint32_t>(request.op)) | Control::prio.put(request.prio),
        request.dest_id,
        request.length_bytes,
        static_cast<uint32_t>(request.cookie),
        request.rio_addr,
        request.iova};
    window_.cookies()[slot] = request.cookie;
    window_.sizes()[slot] = request.length_bytes;
  }
  window_.post(k);
  ring_doorbell(head);
  hook_();
  return static_cast<uint16_t>(k);
}

uint16_t DmaQueue::reap(EntryDone* out, uint16_t n) {
  return reap_burst(out, n);
}

}  // namespace rio::pmd
