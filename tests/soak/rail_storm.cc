#include "tests/soak/rail_storm.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/random.hpp"

namespace rio::test {
namespace {

constexpr uint16_t kContext = 1;
constexpr uint64_t kBits = 7;
constexpr uint32_t kSmallBytes = 200;
constexpr uint32_t kMiddleBytes = 4000;

[[nodiscard]] tag::Address address(uint32_t node) {
  return tag::address(VirtualHosts::id(node), kContext);
}

}  // namespace

RailStorm::RailStorm(const StormPlan& plan, uint32_t bytes_most)
    : Storm(plan), bytes_most_(bytes_most) {
  if (hosts_ == nullptr) {
    return;
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
  const uint32_t end = kind < 11 ? kSmallBytes : kind < 14 ? kMiddleBytes : bytes_most_;
  return more % std::min(end, bytes_most_);
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
    taking.bytes.assign(bytes_most_, 0);
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
  result_.done(now_ns, end.last_ns, ends_[from].begun_ns[taking.number]);
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
    if (!sending.is_free || now_ns < end.next_ns || (number >= plan_.items && has_all_cuts())) {
      continue;
    }
    end.begun_ns.push_back(now_ns);
    fill(host, number, &sending.bytes);
    const int rc = end.context->send(address(kRails * (1 - host)), kBits, sending.bytes.data(),
                                     sending.bytes.size(), sending.request);
    result_.failed += rc < 0 ? 1 : 0;
    sending.is_free = rc != 0;
    end.next_ns = draw_next_ns();
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

bool RailStorm::is_over() const {
  bool is_over = has_all_cuts();
  for (uint32_t host = 0; host < kHosts && is_over; ++host) {
    const End& end = ends_[host];
    is_over = end.begun_ns.size() >= plan_.items && ends_[1 - host].taken == end.begun_ns.size() &&
              std::all_of(end.sends.begin(), end.sends.end(),
                          [](const Sending& each) { return each.is_free; });
  }
  return is_over;
}

StormResult RailStorm::run() {
  if (result_.failed != 0) {
    return result_;
  }
  Storm::run([this](uint32_t host) -> const msg::MessagePort& { return *ends_[host].port; },
             [this](uint32_t host) { return turn(host); }, [this] { return is_over(); });
  for (uint32_t host = 0; host < kHosts; ++host) {
    result_.items += ends_[host].taken;
    result_.lost += ends_[1 - host].begun_ns.size() - ends_[host].taken;
  }
  return result_;
}

}  // namespace rio::test
