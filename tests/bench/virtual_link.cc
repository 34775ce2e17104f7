#include "tests/bench/virtual_link.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

namespace rio::bench {
namespace {

constexpr uint64_t kLimitNs = 60'000'000'000;
constexpr uint16_t kContext = 1;

[[noreturn]] void die(const char* what, int error) {
  std::fprintf(stderr, "virtual_time: error: %s: %s\n", what, std::strerror(std::abs(error)));
  std::exit(1);
}

/// Picoseconds a byte at a rate; 0 for a rate of 0.
[[nodiscard]] uint32_t ps_per_byte(double mb_per_s) {
  return mb_per_s == 0 ? 0 : static_cast<uint32_t>(std::lround(1e6 / mb_per_s));
}

[[nodiscard]] bool is_idle(const tag::Request& request) {
  return request.stage == tag::Stage::kIdle;
}

}  // namespace

sim::LinkClass link_class(const LinkPlan& plan) {
  const auto headers_ns =
      static_cast<uint32_t>(std::lround(plan.packet_bytes * 1e3 / plan.link_mb_per_s));
  return {.serialisation_ns = headers_ns + plan.packet_ns,
          .ps_per_byte = ps_per_byte(plan.link_mb_per_s),
          .hop_ns = plan.hop_ns};
}

double payload_peak(const sim::LinkClass& link) {
  constexpr uint32_t kPackets = 1000;
  sim::LinkSet links(1, {&link, 1});
  for (uint32_t i = 0; i < kPackets; ++i) {
    static_cast<void>(links.send(0, 0, regs::kSegmentBytesMax));
  }
  return double{kPackets} * regs::kSegmentBytesMax * 1e9 /
         static_cast<double>(links.busy_until_ns(0));
}

VirtualLink::VirtualLink(const LinkPlan& plan, uint64_t bytes_most, uint32_t window)
    : window_(window), rails_(plan.rails), from_(bytes_most) {
  test::VirtualHostsSettings settings;
  settings.topology = rails_ == 1 ? "mesh:2" : "mesh:" + std::to_string(rails_) + "x2";
  settings.network.cards_per_host = rails_;
  settings.network.network.classes = {link_class(plan)};
  settings.network.bus = {.read_ps_per_byte = ps_per_byte(plan.bus_read_mb_per_s),
                          .write_ps_per_byte = ps_per_byte(plan.bus_write_mb_per_s)};
  settings.poll_ns = plan.poll_ns;
  settings.host_ns = plan.host_ns;
  std::string error;
  if (const int rc = test::VirtualHosts::create(settings, &hosts_, &error); rc != 0) {
    die(error.c_str(), rc);
  }
  msg::PortConfig config;
  config.first_number = 1;
  config.rail_policy = plan.policy;
  for (uint32_t host = 0; host < 2; ++host) {
    End& end = ends_[host];
    int rc = hosts_->open(host, config, &end.port);
    rc = rc != 0 ? rc : tag::TaggedContext::create(*end.port, kContext, {}, &end.context);
    if (rc != 0) {
      die("cannot open a port", rc);
    }
  }
  for (size_t i = 0; i < from_.size(); ++i) {
    from_.data()[i] = static_cast<uint8_t>(i * 7 + i / 251);
  }
  for (uint32_t i = 0; i < window; ++i) {
    for (std::vector<Pages>& to : to_) {
      to.emplace_back(bytes_most);
    }
  }
}

VirtualLink::~VirtualLink() {
  for (End& end : ends_) {
    end.context.reset();
  }
  for (End& end : ends_) {
    end.port.reset();
  }
}

tag::Address VirtualLink::address(uint32_t host) const {
  return tag::address(test::VirtualHosts::id(host * rails_), kContext);
}

/// Let a host work once. @return how many messages are done; 1 if anything else has happened.
uint32_t VirtualLink::progress(uint32_t host) {
  End& end = ends_[host];
  end.context->progress();
  const uint64_t before = std::exchange(end.activity, end.port->activity());
  uint32_t messages = 0;
  while (const tag::Request* const done = end.context->next_done()) {
    if (done->status != 0) {
      die(done->is_receive ? "receive" : "send", done->status);
    }
    ++(done->is_receive ? receives_done_ : sends_done_);
    ++messages;
  }
  return messages == 0 && end.activity != before ? 1 : messages;
}

/// @param act(host) what a host does after its progress; returns how many messages it began.
template <class Act, class Done>
void VirtualLink::run(const Act& act, const Done& done) {
  const auto turn = [&](uint32_t host) {
    const uint32_t done_now = progress(host);
    return done_now + act(host);
  };
  if (!hosts_->run(turn, done, kLimitNs)) {
    die("no end after a virtual minute", ETIMEDOUT);
  }
}

void VirtualLink::send(uint32_t from, uint64_t bytes, tag::SendRequest& request, uint64_t bits) {
  const int rc = ends_[from].context->send(address(1 - from), bits, from_.data(), bytes, request);
  if (rc < 0) {
    die("send", rc);
  }
  sends_done_ += rc == 1 ? 1 : 0;
}

void VirtualLink::receive(uint32_t at, const Pages& to, uint64_t bytes, tag::RecvRequest& request,
                          uint64_t bits) {
  const tag::Pattern pattern = {.bits = bits, .source = address(1 - at)};
  const int rc = ends_[at].context->receive(pattern, to.data(), bytes, request);
  if (rc < 0 || (rc == 1 && request.status != 0)) {
    die("receive", rc < 0 ? rc : request.status);
  }
  receives_done_ += rc == 1 ? 1 : 0;
}

void VirtualLink::meet() {
  static_cast<void>(ping_pong_ns(1, 1));
  const auto has_all = [&](uint32_t host) {
    const msg::Link* const link =
        ends_[host].port->known_link(test::VirtualHosts::id((1 - host) * rails_));
    return std::all_of(link->paths.begin(), link->paths.begin() + rails_,
                       [](const auto& path) { return path != nullptr && path->is_found; });
  };
  run([](uint32_t /*host*/) { return 0u; },
      [&] { return rails_ == 1 || (has_all(0) && has_all(1)); });
}

/// Messages from a host to the other.
class VirtualLink::Flow {
 public:
  /// @param bits of its messages.
  Flow(VirtualLink& link, uint32_t from, uint64_t bits, uint64_t bytes, uint32_t count)
      : link_(link),
        from_(from),
        bits_(bits),
        bytes_(bytes),
        count_(count),
        window_(std::min(link.window_, count)),
        sends_(window_),
        receives_(window_) {
    for (const Pages& pages : link.to_[1 - from]) {
      std::memset(pages.data(), 0, bytes);
    }
  }
  /// @return whether a window of receives is posted.
  [[nodiscard]] bool is_ready() const { return posted_ >= window_; }
  /// Post and send what there is room for. @return how many messages a host began.
  uint32_t act(uint32_t host, bool may_send) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < window_ && host != from_; ++i) {
      if (posted_ < count_ && is_idle(receives_[i])) {
        link_.receive(host, link_.to_[host][i], bytes_, receives_[i], bits_);
        ++posted_;
        ++n;
      }
    }
    for (uint32_t i = 0; i < window_ && host == from_ && may_send; ++i) {
      if (begun_ < count_ && is_idle(sends_[i])) {
        link_.send(host, bytes_, sends_[i], bits_);
        ++begun_;
        ++n;
      }
    }
    return n;
  }
  void check() const {
    for (uint32_t i = 0; i < window_; ++i) {
      if (std::memcmp(link_.to_[1 - from_][i].data(), link_.from_.data(), bytes_) != 0) {
        die("a message has other bytes than were sent", EIO);
      }
    }
  }

 private:
  VirtualLink& link_;
  const uint32_t from_;
  const uint64_t bits_;
  const uint64_t bytes_;
  const uint32_t count_;
  const uint32_t window_;
  std::vector<tag::SendRequest> sends_;
  std::vector<tag::RecvRequest> receives_;
  uint32_t begun_ = 0;
  uint32_t posted_ = 0;
};

uint64_t VirtualLink::stream_ns(uint64_t bytes, uint32_t count, uint32_t each_way, bool both_ways) {
  std::vector<std::unique_ptr<Flow>> flows;
  for (uint32_t from = 0; from < (both_ways ? 2u : 1u); ++from) {
    for (uint32_t i = 0; i < each_way; ++i) {
      flows.push_back(std::make_unique<Flow>(*this, from, i + 1, bytes, count));
    }
  }
  const uint64_t messages = count * flows.size();
  const auto are_ready = [&] {
    return std::all_of(flows.begin(), flows.end(),
                       [](const auto& flow) { return flow->is_ready(); });
  };
  const auto act = [&](uint32_t host) {
    const bool may_send = are_ready();
    uint32_t n = 0;
    for (const auto& flow : flows) {
      n += flow->act(host, may_send);
    }
    return n;
  };
  sends_done_ = receives_done_ = 0;
  run(act, are_ready);
  const uint64_t begin_ns = hosts_->now_ns();
  run(act, [&] { return receives_done_ == messages; });
  const uint64_t took_ns = hosts_->now_ns() - begin_ns;
  run(act, [&] { return sends_done_ == messages; });
  for (const auto& flow : flows) {
    flow->check();
  }
  return took_ns;
}

uint64_t VirtualLink::ping_pong_ns(uint64_t bytes, uint32_t count) {
  const uint32_t messages = 2 * count;  // those with an even number go to host 1
  tag::SendRequest sends[2];
  tag::RecvRequest receives[2];
  uint32_t arrived = 0;
  const auto act = [&](uint32_t host) {
    if (arrived == messages || arrived % 2 == host || !is_idle(receives[host]) ||
        !is_idle(sends[host])) {
      return 0u;
    }
    ++arrived;
    if (arrived + 1 < messages) {
      receive(host, to_[host].front(), bytes, receives[host]);
    }
    if (arrived < messages) {
      send(host, bytes, sends[host]);
    }
    return 1u;
  };
  sends_done_ = receives_done_ = 0;
  receive(0, to_[0].front(), bytes, receives[0]);
  receive(1, to_[1].front(), bytes, receives[1]);
  const uint64_t begin_ns = hosts_->now_ns();
  send(0, bytes, sends[0]);
  run(act, [&] { return arrived == messages; });
  const uint64_t took_ns = hosts_->now_ns() - begin_ns;
  run(act, [&] { return sends_done_ == messages; });
  return took_ns;
}

}  // namespace rio::bench
