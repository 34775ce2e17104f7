#include "tests/soak/rail_storm.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/random.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::test {
namespace {

constexpr uint16_t kContext = 1;
constexpr uint64_t kBits = 7;
constexpr uint64_t kLimitNs = 20'000'000'000;
constexpr uint64_t kUsNs = 1000;
constexpr uint32_t kSmallBytes = 200;
constexpr uint32_t kMiddleBytes = 4000;

[[nodiscard]] tag::Address address(uint32_t node) {
  return tag::address(VirtualHosts::id(node), kContext);
}

}  // namespace

RailStorm::RailStorm(const StormPlan& plan) : plan_(plan), random_(plan.seed) {
  VirtualHostsSettings settings;
  settings.topology = "mesh:2x2";
  settings.network.cards_per_host = kRails;
  settings.poll_ns = 20 * kUsNs;
  std::string error;
  if (VirtualHosts::create(settings, &hosts_, &error) != 0) {
    result_.log = error;
    return;
  }
  // The two links between cards of one host go first, so that each rail is a network of its own.
  for (uint32_t host = 0; host < kHosts; ++host) {
    sim::NetworkBase& network = hosts_->network().network();
    const uint32_t link = network.topology().next_link(kRails * host, kRails * host + 1);
    for (const uint32_t each : {link, network.topology().reverse(link)}) {
      network.schedule({.at_ns = 1, .kind = sim::FaultKind::kLinkDown, .target = each});
    }
  }
  msg::PortConfig config;
  config.response_timeout_us = plan.timeout_us;
  config.connect_ms = 10'000;
  for (uint32_t host = 0; host < kHosts; ++host) {
    End& end = ends_[host];
    int rc = hosts_->open(host, config, &end.port);
    rc = rc != 0 ? rc : tag::TaggedContext::create(*end.port, kContext, {}, &end.context);
    result_.failed += rc != 0 ? 1 : 0;
  }
}

RailStorm::~RailStorm() {
  for (End& end : ends_) {
    end.context.reset();
  }
  for (End& end : ends_) {
    end.port.reset();
  }
}

/// Most messages are small; some are long, some need a transfer.
uint32_t RailStorm::length(uint32_t from, uint32_t number) const {
  const uint64_t drawn = base::mix64(plan_.seed << 32 ^ uint64_t{from} << 31 ^ number);
  const uint64_t kind = drawn % 16;
  const auto more = static_cast<uint32_t>(drawn >> 32);
  const uint32_t end = kind < 11 ? kSmallBytes : kind < 14 ? kMiddleBytes : plan_.bytes_most;
  return more % std::min(end, plan_.bytes_most);
}

void RailStorm::fill(uint32_t from, uint32_t number, std::vector<uint8_t>* out) const {
  out->resize(length(from, number));
  uint64_t drawn = plan_.seed << 32 ^ uint64_t { from } << 31 ^ number;
  for (size_t at = 0; at < out->size(); at += sizeof(drawn)) {
    drawn = base::mix64(drawn += base::kRandomStep);
    std::memcpy(out->data() + at, &drawn, std::min(sizeof(drawn), out->size() - at));
  }
}

void RailStorm::cut(uint32_t rail, uint64_t from_ns, uint64_t to_ns, uint32_t direction) {
  sim::NetworkBase& network = hosts_->network().network();
  const uint32_t link = network.topology().next_link(rail, kRails + rail);
  const uint32_t links[2] = {link, network.topology().reverse(link)};
  for (uint32_t i = 0; i < 2; ++i) {
    if (direction == 2 || direction == i) {
      network.schedule({.at_ns = from_ns, .kind = sim::FaultKind::kLinkDown, .target = links[i]});
      network.schedule({.at_ns = to_ns, .kind = sim::FaultKind::kLinkUp, .target = links[i]});
    }
  }
  result_.log += "  rail " + std::to_string(rail) + " down " + std::to_string(from_ns / kUsNs) +
                 " to " + std::to_string(to_ns / kUsNs) + " us" +
                 (direction == 2 ? "" : ", direction " + std::to_string(direction)) + "\n";
}

/// A link that a card knows to be down: the card reports it.
void RailStorm::switch_off(uint32_t rail, uint64_t from_ns, uint64_t to_ns, uint32_t host) {
  switches_.push_back({from_ns, host, rail, false});
  switches_.push_back({to_ns, host, rail, true});
  result_.log += "  rail " + std::to_string(rail) + " off " + std::to_string(from_ns / kUsNs) +
                 " to " + std::to_string(to_ns / kUsNs) + " us, by host " + std::to_string(host) +
                 "\n";
}

void RailStorm::switch_links(uint32_t host) {
  for (const Switch& each : switches_) {
    if (each.at_ns <= hosts_->now_ns() && each.host == host) {
      ends_[host].port->rails().at(each.rail).endpoint.card().bus().bar().write32(
          regs::port::control(), each.is_on ? 1 : 0);
    }
  }
  std::erase_if(switches_, [&](const Switch& each) {
    return each.at_ns <= hosts_->now_ns() && each.host == host;
  });
}

/// One rail is down at a time, in one direction or both, with a report of the card or without; the
/// pause before the next cut may be too short for the rail to be up again.
void RailStorm::plan_cuts() {
  const uint64_t timeout_ns = plan_.timeout_us * kUsNs;
  uint64_t at_ns = hosts_->network().now_ns() + below(5 * timeout_ns);
  for (uint32_t i = 0; i < plan_.cuts; ++i) {
    const uint64_t down_ns =
        timeout_ns / 4 + below(below(4) == 0 ? 400 * timeout_ns : 8 * timeout_ns);
    const auto rail = static_cast<uint32_t>(below(kRails));
    if (below(4) == 0) {
      switch_off(rail, at_ns, at_ns + down_ns, static_cast<uint32_t>(below(kHosts)));
    } else {
      cut(rail, at_ns, at_ns + down_ns, std::min(static_cast<uint32_t>(below(4)), 2u));
    }
    end_ns_ = at_ns + down_ns;
    at_ns = end_ns_ + timeout_ns + below(below(2) == 0 ? 600 * timeout_ns : 10 * timeout_ns);
  }
}

uint32_t RailStorm::begin_receives(uint32_t host) {
  End& end = ends_[host];
  uint32_t count = 0;
  for (Taking& taking : end.takes) {
    if (!taking.is_free) {
      continue;
    }
    ++count;
    taking.is_free = false;
    taking.number = end.posted++;
    taking.bytes.assign(plan_.bytes_most, 0);
    const tag::Pattern pattern = {.bits = kBits, .source = address(kRails * (1 - host))};
    const int rc =
        end.context->receive(pattern, taking.bytes.data(), taking.bytes.size(), taking.request);
    result_.failed += rc < 0 ? 1 : 0;
    if (rc == 1) {
      check(host, taking);
    }
  }
  return count;
}

void RailStorm::check(uint32_t host, Taking& taking) {
  End& end = ends_[host];
  const uint32_t from = 1 - host;
  const uint64_t now_ns = hosts_->now_ns();
  const uint64_t since_ns = std::max(end.last_ns, ends_[from].begun_ns[taking.number]);
  if (now_ns - since_ns > result_.silence_ns) {
    result_.silence_ns = now_ns - since_ns;
    result_.silence_at_ns = now_ns;
  }
  result_.longest_ns = std::max(result_.longest_ns, now_ns - ends_[from].begun_ns[taking.number]);
  end.last_ns = now_ns;
  taking.is_free = true;
  ++end.taken;
  std::vector<uint8_t> expected;
  fill(from, taking.number, &expected);
  const bool is_whole = taking.request.length_bytes == expected.size() &&
                        std::equal(expected.begin(), expected.end(), taking.bytes.begin());
  if (taking.request.status != 0) {
    ++result_.failed;
  } else if (!is_whole) {
    const uint64_t length_bytes = taking.request.length_bytes;
    bool is_another = false;
    for (uint32_t number = 0; number < end.posted && !is_another; ++number) {
      if (length(from, number) == length_bytes) {
        fill(from, number, &expected);
        is_another = std::equal(expected.begin(), expected.end(), taking.bytes.begin());
      }
    }
    ++(is_another ? result_.wrong : result_.torn);
  }
}

uint32_t RailStorm::begin_sends(uint32_t host) {
  End& end = ends_[host];
  const uint64_t now_ns = hosts_->now_ns();
  uint32_t count = 0;
  for (Sending& sending : end.sends) {
    const auto number = static_cast<uint32_t>(end.begun_ns.size());
    if (!sending.is_free || now_ns < end.next_ns ||
        (number >= plan_.messages && now_ns > end_ns_)) {
      continue;
    }
    end.begun_ns.push_back(now_ns);
    fill(host, number, &sending.bytes);
    const int rc = end.context->send(address(kRails * (1 - host)), kBits, sending.bytes.data(),
                                     sending.bytes.size(), sending.request);
    result_.failed += rc < 0 ? 1 : 0;
    sending.is_free = rc != 0;
    const uint64_t gap_ns = uint64_t{plan_.timeout_us} * kUsNs * (below(8) == 0 ? 20 : 1);
    end.next_ns = now_ns + (below(2) == 0 ? below(gap_ns) : 0);
    ++count;
  }
  return count;
}

uint32_t RailStorm::turn(uint32_t host) {
  End& end = ends_[host];
  switch_links(host);
  end.context->progress();
  const uint64_t before = std::exchange(end.activity, end.port->activity());
  uint32_t count = end.activity != before ? 1 : 0;
  while (tag::Request* const done = end.context->next_done()) {
    ++count;
    if (done->is_receive) {
      const auto it = std::find_if(end.takes.begin(), end.takes.end(),
                                   [&](const Taking& each) { return &each.request == done; });
      check(host, *it);
      continue;
    }
    const auto it = std::find_if(end.sends.begin(), end.sends.end(),
                                 [&](const Sending& each) { return &each.request == done; });
    it->is_free = true;
    result_.failed += done->status != 0 ? 1 : 0;
  }
  return count + begin_receives(host) + begin_sends(host);
}

bool RailStorm::has_all_paths() const {
  for (uint32_t host = 0; host < kHosts; ++host) {
    const msg::Link* const link =
        ends_[host].port->known_link(VirtualHosts::id(kRails * (1 - host)));
    for (uint32_t rail = 0; rail < kRails; ++rail) {
      if (link == nullptr || link->paths[rail] == nullptr || !link->paths[rail]->is_found) {
        return false;
      }
    }
  }
  return true;
}

bool RailStorm::is_over() const {
  bool is_over = hosts_->now_ns() > end_ns_;
  for (uint32_t host = 0; host < kHosts && is_over; ++host) {
    const End& end = ends_[host];
    is_over = end.begun_ns.size() >= plan_.messages &&
              ends_[1 - host].taken == end.begun_ns.size() &&
              std::all_of(end.sends.begin(), end.sends.end(),
                          [](const Sending& each) { return each.is_free; });
  }
  return is_over;
}

StormResult RailStorm::run() {
  if (hosts_ == nullptr || result_.failed != 0) {
    return result_;
  }
  end_ns_ = UINT64_MAX;
  const auto step = [this](uint32_t host) { return turn(host); };
  if (!hosts_->run(
          step, [this] { return has_all_paths(); }, kLimitNs)) {
    result_.log += "  no paths\n";
    return result_;
  }
  plan_cuts();
  result_.is_over = hosts_->run(
                        step, [&] { return is_over() || result_.failed > 0; }, kLimitNs) &&
                    result_.failed == 0;
  for (uint32_t host = 0; host < kHosts; ++host) {
    const End& end = ends_[host];
    result_.messages += end.taken;
    result_.lost += ends_[1 - host].begun_ns.size() - end.taken;
    result_.sessions += end.port->sessions_ended() + end.port->stats().cut_off;
    for (const auto& path : end.port->known_link(VirtualHosts::id(kRails * (1 - host)))->paths) {
      result_.moves += path != nullptr ? path->state.counts().moves : 0;
    }
  }
  return result_;
}

}  // namespace rio::test
