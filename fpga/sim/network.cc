#include "fpga/sim/network.hpp"

#include <cassert>

#include "base/formatted.hpp"

namespace rio::sim {
namespace {

/// A class for each class of links, with a topology file's loss rate.
[[nodiscard]] std::vector<LinkClass> all_classes(const NetworkTopology& topology,
                                                 const NetworkSettings& settings) {
  std::vector<LinkClass> classes = settings.classes;
  classes.resize(topology.link_classes(), classes.front());
  const auto* const file = std::get_if<FileFabric>(&topology.shape());
  if (file != nullptr && classes[FileFabric::kFromNode].loss_rate == 0.0) {
    classes[FileFabric::kFromNode].loss_rate = file->loss_rate();
  }
  return classes;
}

[[nodiscard]] uint64_t file_seed(const NetworkTopology& topology) {
  const auto* const file = std::get_if<FileFabric>(&topology.shape());
  return file != nullptr ? file->loss_seed() : 0;
}

}  // namespace

int NetworkBase::check(const NetworkTopology& topology, const NetworkSettings& settings,
                       std::string* error) {
  const size_t classes = settings.classes.size();
  if (classes != 1 && classes != topology.link_classes()) {
    return base::fail(error, "%zu classes of links; give 1 for all, or the topology's %u", classes,
                      topology.link_classes());
  }
  return LinkSet::check(settings.classes, error);
}

NetworkBase::NetworkBase(NetworkTopology topology, const NetworkSettings& settings)
    : links_(topology.links(), all_classes(topology, settings)),
      topology_(std::move(topology)),
      random_(settings.seed + file_seed(topology_)),
      down_((topology_.devices() + 63) / 64) {
  for (uint32_t link = 0; link < links_.size(); ++link) {
    if (topology_.has_link(link)) {
      links_.set_class(link, topology_.link_class(link));
      may_lose_ = may_lose_ || links_.class_of(link).loss_rate > 0.0;
    }
  }
}

size_t NetworkBase::bytes() const {
  return calendar_.bytes() + links_.bytes();
}

void NetworkBase::send(const Packet& packet) {
  assert(packet.source < topology_.nodes() && packet.destination < topology_.nodes());
  assert(packet.kind <= kPacketKindMax);
  ++counters_.sent;
  const Event event{packet.source, packet.destination, packet.tag, packet.info, packet.len_bytes,
                    kNoLink,       packet.kind & 15u};
  const uint32_t link = topology_.next_link(packet.source, packet.destination);
  if (link != kNoLink) {
    enter(link, event);
  } else {
    calendar_.push(calendar_.now(), event);
  }
}

void NetworkBase::set_timer(uint64_t time_ns, const NodeTimer& timer) {
  assert(timer.node < topology_.nodes());
  calendar_.push(time_ns,
                 Event{timer.node, timer.word, timer.tag, timer.info, 0, kNoLink, kTimerKind});
}

void NetworkBase::schedule(const NetworkFault& fault) {
  calendar_.push(fault.at_ns, Event{0, fault.target, 0, static_cast<uint16_t>(fault.kind), 0,
                                    kNoLink, kFaultKind});
}

void NetworkBase::lose_packet(uint32_t link, uint32_t nth) {
  assert(topology_.has_link(link));
  to_lose_.emplace(link, nth);
  may_lose_ = true;
}

bool NetworkBase::is_lost_slow(uint32_t link) {
  if (to_lose_.erase({link, links_.sent(link) - 1}) != 0) {
    return true;
  }
  const double rate = links_.class_of(link).loss_rate;
  return rate > 0.0 && random_.chance(rate);
}

void NetworkBase::apply_slow(const Event& fault) {
  has_faults_ = true;
  const uint32_t target = fault.destination;
  switch (static_cast<FaultKind>(fault.info)) {
    case FaultKind::kDeviceDown:
      return set_device(target, false);
    case FaultKind::kDeviceUp:
      return set_device(target, true);
    case FaultKind::kLinkDown:
      return links_.begin_trouble(target, LinkTrouble::kCut);
    case FaultKind::kLinkUp:
      return links_.end_trouble(target, LinkTrouble::kCut);
  }
}

void NetworkBase::set_device(uint32_t device, bool up) {
  const uint64_t bit = uint64_t{1} << (device % 64);
  down_[device / 64] = up ? down_[device / 64] & ~bit : down_[device / 64] | bit;
  const auto set = [&](uint32_t link, LinkTrouble trouble) {
    up ? links_.end_trouble(link, trouble) : links_.begin_trouble(link, trouble);
  };
  const LinkRange out = topology_.links_from(device);
  for (uint32_t link = out.first; link < out.first + out.count; ++link) {
    if (topology_.has_link(link)) {
      set(link, LinkTrouble::kSenderDown);
      set(topology_.reverse(link), LinkTrouble::kReceiverDown);
    }
  }
}

}  // namespace rio::sim
