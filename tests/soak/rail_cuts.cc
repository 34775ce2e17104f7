#include "tests/soak/rail_cuts.hpp"

#include <algorithm>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kUsNs = 1000;

}  // namespace

int RailCuts::create_hosts(std::unique_ptr<VirtualHosts>* out, std::string* error) {
  VirtualHostsSettings settings;
  settings.topology = "mesh:2x2";
  settings.network.cards_per_host = kRails;
  settings.poll_ns = 4 * kUsNs;
  return VirtualHosts::create(settings, out, error);
}

RailCuts::RailCuts(VirtualHosts& hosts, uint32_t timeout_us)
    : hosts_(hosts), timeout_ns_(timeout_us * kUsNs) {
  // The two links between cards of one host go first.
  for (uint32_t host = 0; host < kHosts; ++host) {
    sim::NetworkBase& network = hosts_.network().network();
    const uint32_t link = network.topology().next_link(kRails * host, kRails * host + 1);
    for (const uint32_t each : {link, network.topology().reverse(link)}) {
      network.schedule({.at_ns = 1, .kind = sim::FaultKind::kLinkDown, .target = each});
    }
  }
}

void RailCuts::cut(uint32_t rail, uint64_t from_ns, uint64_t to_ns, uint32_t direction) {
  sim::NetworkBase& network = hosts_.network().network();
  const uint32_t link = network.topology().next_link(rail, kRails + rail);
  const uint32_t links[2] = {link, network.topology().reverse(link)};
  for (uint32_t i = 0; i < 2; ++i) {
    if (direction == 2 || direction == i) {
      network.schedule({.at_ns = from_ns, .kind = sim::FaultKind::kLinkDown, .target = links[i]});
      network.schedule({.at_ns = to_ns, .kind = sim::FaultKind::kLinkUp, .target = links[i]});
    }
  }
  log_ += "  rail " + std::to_string(rail) + " down " + std::to_string(from_ns / kUsNs) + " to " +
          std::to_string(to_ns / kUsNs) + " us" +
          (direction == 2 ? "" : ", direction " + std::to_string(direction)) + "\n";
}

/// A link that a card knows to be down: the card reports it.
void RailCuts::switch_off(uint32_t rail, uint64_t from_ns, uint64_t to_ns, uint32_t host) {
  switches_.push_back({from_ns, host, rail, false});
  switches_.push_back({to_ns, host, rail, true});
  log_ += "  rail " + std::to_string(rail) + " off " + std::to_string(from_ns / kUsNs) + " to " +
          std::to_string(to_ns / kUsNs) + " us, by host " + std::to_string(host) + "\n";
}

void RailCuts::switch_links(uint32_t host, msg::MessagePort& port) {
  const auto is_due = [&](const Switch& each) {
    return each.at_ns <= hosts_.now_ns() && each.host == host;
  };
  for (const Switch& each : switches_) {
    if (is_due(each)) {
      port.rails().at(each.rail).endpoint.card().bus().bar().write32(regs::port::control(),
                                                                     each.is_on ? 1 : 0);
    }
  }
  std::erase_if(switches_, is_due);
}

void RailCuts::plan(uint32_t count, std::mt19937_64& random) {
  const auto below = [&](uint64_t end) { return random() % end; };
  uint64_t at_ns = hosts_.network().now_ns() + below(5 * timeout_ns_);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t down_ns =
        timeout_ns_ / 4 + below(below(4) == 0 ? 400 * timeout_ns_ : 8 * timeout_ns_);
    const auto rail = static_cast<uint32_t>(below(kRails));
    if (below(4) == 0) {
      switch_off(rail, at_ns, at_ns + down_ns, static_cast<uint32_t>(below(kHosts)));
    } else {
      cut(rail, at_ns, at_ns + down_ns, std::min(static_cast<uint32_t>(below(4)), 2u));
    }
    end_ns_ = at_ns + down_ns;
    at_ns = end_ns_ + timeout_ns_ + below(below(2) == 0 ? 600 * timeout_ns_ : 10 * timeout_ns_);
  }
}

bool RailCuts::has_paths(uint32_t host, const msg::MessagePort& port) {
  const msg::Link* const link = port.known_link(peer_id(host));
  for (uint32_t rail = 0; rail < kRails; ++rail) {
    if (link == nullptr || link->paths[rail] == nullptr || !link->paths[rail]->is_found) {
      return false;
    }
  }
  return true;
}

uint64_t RailCuts::moves(uint32_t host, const msg::MessagePort& port) {
  uint64_t count = 0;
  for (const auto& path : port.known_link(peer_id(host))->paths) {
    count += path != nullptr ? path->state.counts().moves : 0;
  }
  return count;
}

}  // namespace rio::test
