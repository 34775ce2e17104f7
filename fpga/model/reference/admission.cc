#include "fpga/model/reference/admission.hpp"

#include <algorithm>

namespace rio::model {
namespace {

using regs::Status;

constexpr uint32_t kFull = regs::kSegmentBytesMax;

}  // namespace

Pair* Admission::target(const InFrame& frame) {
  const Owner* owner = core_.owner(frame.dest);
  if (owner == nullptr || owner->entry_of_mbox[frame.mbox()] == kNoEntry) [[unlikely]] {
    ++core_.counts.rx_unmapped;
    return nullptr;
  }
  return &core_.pairs[core_.pair_of_entry[owner->entry_of_mbox[frame.mbox()]]];
}

Ring* Admission::dedicated_ring(Pair& pair, const InFrame& frame) {
  const uint32_t mbox = frame.mbox();
  uint32_t open = mbox < regs::kMultiMailboxes ? pair.dedicated_open[mbox] : 0;
  while (open != 0) {
    const auto queue = static_cast<uint32_t>(__builtin_ctz(open));
    if (pair.dedicated_source[queue] == frame.source) {
      return &pair.rings[kDedicatedRing + queue];
    }
    open &= open - 1;
  }
  return nullptr;
}

Answer Admission::admit(const InFrame& frame, Pair* pair, uint32_t whole_bytes, Landing* out) {
  if (pair == nullptr || core_.faults.draw(Fault::kError)) {
    return Answer::kError;
  }
  if (core_.faults.draw(Fault::kRetry)) {
    return Answer::kRetry;
  }
  Ring* const dedicated = dedicated_ring(*pair, frame);
  Ring& ring = dedicated != nullptr ? *dedicated : pair->rings[kSharedRing];
  if (!ring.running()) {
    // If a dedicated ring stopped with an error, falling back to the shared queue would split the
    // stream.
    return Answer::kError;
  }
  if (ring.held || (ring.posted() == 0 && core_.poll_tail(ring) == 0)) {
    return Answer::kRetry;
  }
  out->ring = &ring;
  out->source = frame.source;
  out->dest_id = frame.dest;
  out->place = frame.place;
  out->segments = frame.segments;
  ring.count_fetch(ring_kind(ring.number).entry_bytes);
  out->index = ring.head++;
  if (dedicated != nullptr) {
    return admit_dedicated(frame, whole_bytes, out);
  }
  out->arrival = pair->arrivals++;
  out->map_entry = core_.owner(frame.dest)->entry_of_mbox[frame.mbox()];
  std::memcpy(&out->addr, ring.entry(out->index, 3), sizeof(out->addr));
  return Answer::kDone;
}

Answer Admission::admit_dedicated(const InFrame& frame, uint32_t whole_bytes, Landing* out) {
  const auto entry = out->ring->fetch<regs::DedicatedDesc>(out->index);
  // Before the last segment, only the number of segments and the size of all but the last are
  // known.
  const bool count_fits = (entry.size + frame.ssize - 1) / frame.ssize == frame.segments;
  const uint64_t addr_mask = (1ull << core_.config.dedicated_addr_log2) - 1;
  const uint32_t size_mask = (1u << core_.config.dedicated_size_log2) - 1;
  const bool legal = entry.size != 0 && entry.size <= regs::kMessageBytesMax &&
                     (entry.size & size_mask) == 0 && (entry.addr & addr_mask) == 0;
  out->cookie = entry.cookie;
  out->size = entry.size;
  out->addr = entry.addr;
  if (!legal) {
    return mismatch(*out, Status::kBadDescriptor);
  }
  if (!count_fits || (whole_bytes != 0 && whole_bytes != entry.size)) {
    return mismatch(*out, Status::kSizeMismatch);
  }
  return Answer::kDone;
}

Answer Admission::mismatch(const Landing& landing, Status status) {
  complete(landing, 0, status);
  core_.fail_ring(*landing.ring, regs::RingError::kMismatch, landing.index);
  return Answer::kError;
}

void Admission::land(const Landing& landing, const InFrame& frame, uint32_t segment,
                     uint32_t offset, const uint8_t* bytes, uint32_t len) {
  const bool last = segment + 1u == frame.segments;
  if (last && core_.config.quirk_last_at_256) {
    offset = kFull * (frame.segments - 1u);
  }
  HostPort& host = *landing.ring->pair->function->host;
  if (last && core_.config.quirk_last_full_256) {
    uint8_t full[kFull] = {};
    std::memcpy(full, bytes, len);
    host.write(landing.addr + offset, full, kFull, landing.ring->relaxed);
    landing.ring->pcie.write(kFull);
    return;
  }
  landing.ring->pcie.write(len);
  host.write(landing.addr + offset, bytes, len, landing.ring->relaxed);
}

void Admission::complete(const Landing& landing, uint32_t bytes, Status status) {
  Ring& ring = *landing.ring;
  if (ring.number != kSharedRing) {
    core_.complete_entry(ring, landing.cookie, landing.index, bytes, status);
    return;
  }
  if (ring.brief) {
    using Last = regs::shared_short_cpl::Status;
    const uint32_t segments = std::max<uint32_t>(landing.segments, 1);
    regs::SharedShortCpl cpl{landing.source,
                             short_place(bytes, segments, landing.place, landing.map_entry),
                             landing.index, 0};
    core_.complete(
        ring, &cpl,
        Last::code.put(static_cast<uint32_t>(status)) | Last::arrival.put(landing.arrival));
    return;
  }
  regs::SharedCpl cpl{landing.source,
                      landing.dest_id,
                      static_cast<uint16_t>(bytes),
                      landing.segments,
                      landing.place,
                      landing.index,
                      landing.arrival,
                      core_.ticks(),
                      0,
                      0};
  core_.complete(ring, &cpl, static_cast<uint32_t>(status));
}

}  // namespace rio::model
