#include "lib/rail/rail_loads.hpp"

#include <algorithm>

namespace rio::rail {
namespace {

constexpr uint64_t kSlowest = UINT32_MAX;  // ns per KiB: 250 bytes a second

}  // namespace

RailLoads::RailLoads() {
  guess_others();
}

void RailLoads::set_distance(uint32_t rail, uint32_t distance) {
  assert(rail < kRails && distance >= kLocalDistance && distance <= 255);
  rails_[rail].distance = distance;
  guess_others();
}

void RailLoads::completed(uint32_t rail, uint64_t bytes, uint64_t now_ns) {
  Rail& r = rails_[rail];
  assert(bytes <= r.queued_bytes);
  if (r.last_ns != 0) {
    r.sample_bytes += bytes;
    r.sample_ns += now_ns - r.last_ns;
    if (r.sample_bytes >= kSampleBytes) [[unlikely]] {
      learn(r);
    }
  }
  r.queued_bytes -= bytes;
  r.last_ns = r.queued_bytes >= kBusyBytes ? now_ns : 0;
}

void RailLoads::dropped(uint32_t rail, uint64_t bytes) {
  Rail& r = rails_[rail];
  assert(bytes <= r.queued_bytes);
  r.queued_bytes -= bytes;
  r.last_ns = 0;
  r.sample_bytes = 0;
  r.sample_ns = 0;
}

void RailLoads::forget(uint32_t rail) {
  Rail& r = rails_[rail];
  r.is_learnt = false;
  r.last_ns = 0;
  r.sample_bytes = 0;
  r.sample_ns = 0;
  guess_others();
}

uint32_t RailLoads::rate_kib_s(uint32_t rail) const {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(1'000'000'000 / rails_[rail].ns_per_kib, 1, UINT32_MAX));
}

/// A quarter of the rate is that of the last sample; the first sample counts alone.
void RailLoads::learn(Rail& rail) {
  const uint64_t sample =
      std::clamp<uint64_t>(rail.sample_ns * 1024 / rail.sample_bytes, 1, kSlowest);
  rail.ns_per_kib = rail.is_learnt ? (3 * rail.ns_per_kib + sample + 2) / 4 : sample;
  rail.is_learnt = true;
  rail.sample_bytes = 0;
  rail.sample_ns = 0;
  guess_others();
}

void RailLoads::guess_others() {
  uint64_t local = UINT64_MAX;  // of the fastest learnt rail, if its card were near
  for (const Rail& rail : rails_) {
    if (rail.is_learnt) {
      local = std::min(local, rail.ns_per_kib * kLocalDistance / rail.distance);
    }
  }
  local = local == UINT64_MAX ? kFirstNsPerKib : std::max<uint64_t>(local, 1);
  for (Rail& rail : rails_) {
    if (!rail.is_learnt) {
      rail.ns_per_kib = std::min(local * rail.distance / kLocalDistance, kSlowest);
    }
  }
}

}  // namespace rio::rail
