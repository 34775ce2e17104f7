#include "tests/soak/rail_storm.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/random.hpp"

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
  if (RailCuts::create_hosts(&hosts_, &result_.log) != 0) {
    return;
  }
  cuts_ = std::make_unique<RailCuts>(*hosts_, plan.timeout_us);
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
  cuts_->switch_links(host, *end.port);
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
  return RailCuts::has_paths(0, *ends_[0].port) && RailCuts::has_paths(1, *ends_[1].port);
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
  cuts_->plan(plan_.cuts, random_);
  end_ns_ = cuts_->end_ns();
  result_.is_over = hosts_->run(
                        step, [&] { return is_over() || result_.failed > 0; }, kLimitNs) &&
                    result_.failed == 0;
  result_.log += cuts_->log();
  for (uint32_t host = 0; host < kHosts; ++host) {
    const End& end = ends_[host];
    result_.messages += end.taken;
    result_.lost += ends_[1 - host].begun_ns.size() - end.taken;
    result_.sessions += end.port->sessions_ended() + end.port->stats().cut_off;
    result_.moves += RailCuts::moves(host, *end.port);
  }
  return result_;
}

}  // namespace rio::test
