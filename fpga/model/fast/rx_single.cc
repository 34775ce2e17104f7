#include "fpga/model/fast/rx_single.hpp"

#include <algorithm>

namespace rio::model {

bool RxSingle::aim() {
  Pair& pair = core_.pairs[0];
  Ring& ring = pair.rings[kSharedRing];
  const HostWindow& host = core_.host.write_window();
  if (core_.owners.size() != 1 || !ring.running() || ring.held || ring.cbase == nullptr ||
      host.len_bytes < plain::kFull) {
    return false;
  }
  const Owner& owner = core_.owners[0];
  const auto* const mine = std::find(std::begin(owner.plain_pair), std::end(owner.plain_pair), 0);
  if (mine == std::end(owner.plain_pair)) {
    return false;
  }
  lane_ = {.pair = &pair,
           .ring = &ring,
           .mailboxes = owner.plain_like[mine - std::begin(owner.plain_pair)],
           .begin = host.iova,
           .last = host.len_bytes - plain::kFull,
           .va = host.va,
           .time = static_cast<uint64_t>(core_.ticks()) << 32,
           .dest_id = owner.dest_id};
  return true;
}

}  // namespace rio::model
