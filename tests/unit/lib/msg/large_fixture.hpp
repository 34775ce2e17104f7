/// @file
/// Ports of this process that move large data.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/msg/message_context.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg::test {

constexpr uint32_t kContext = 3;
// The longest wait. A transfer that fails eight times rests for seconds, however short a turn is.
constexpr uint32_t kTurns = 16'000'000;

/// A port with one context that takes large data.
struct Node {
  explicit Node(const std::string& card, uint32_t dest_id, uint32_t queue_pair = 0,
                uint32_t deliver_ms = 60'000) {
    PortConfig config;
    config.deliver_ms = deliver_ms;
    config.card = card;
    config.dest_id = dest_id;
    config.queue_pair = queue_pair;
    config.buffers = 2048;
    config.share = 64;
    EXPECT_EQ(MessagePort::open(config, &port), 0);
    EXPECT_EQ(MessageContext::create(*port, kContext, &context), 0);
    EXPECT_EQ(context->accept_large(), 0);
  }
  [[nodiscard]] Route to(const Node& other) const {
    Route route;
    EXPECT_EQ(port->route(other.port->dest_id(), kContext, kContext, Kind::kData, &route), 0);
    return route;
  }
  [[nodiscard]] bool has_request() const {
    return !context->inbox().empty() && kind_of(context->inbox().at(0)) == Kind::kRequest;
  }

  std::unique_ptr<MessagePort> port;
  std::unique_ptr<MessageContext> context;
};

/// Fills memory with bytes that depend on their place.
inline void fill(uint8_t* at, uint64_t len_bytes, uint32_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (uint64_t i = 0; i < len_bytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    at[i] = static_cast<uint8_t>(state >> 56);
  }
}

/// Memory with an alignment of choice, and guards around it.
class Area {
 public:
  Area(uint64_t len_bytes, uint64_t offset, uint8_t guard)
      : bytes_(len_bytes + 3 * kPage, guard), len_bytes_(len_bytes), guard_(guard) {
    const auto base = reinterpret_cast<uintptr_t>(bytes_.data());
    at_ = bytes_.data() + (kPage - base % kPage) % kPage + offset % kPage;
  }
  [[nodiscard]] uint8_t* at() const { return at_; }
  /// Whether nothing outside of [at, at + len) was written.
  [[nodiscard]] bool guarded(uint64_t len_bytes) const {
    for (const uint8_t& byte : bytes_) {
      const bool inside = &byte >= at_ && &byte < at_ + len_bytes;
      if (!inside && byte != guard_) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] uint64_t size() const { return len_bytes_; }

 private:
  static constexpr uint64_t kPage = 4096;
  std::vector<uint8_t> bytes_;
  uint64_t len_bytes_;
  uint8_t guard_;
  uint8_t* at_;
};

/// Lets all nodes work until the condition holds.
template <class Until>
[[nodiscard]] bool work(const std::vector<Node*>& nodes, Until&& until) {
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    if (until()) {
      return true;
    }
    for (Node* node : nodes) {
      node->port->progress();
    }
  }
  return false;
}

/// Requests a transfer, as soon as the port accepts it.
[[nodiscard]] inline int send(Node& from, Node& to, const Area& area, SendTransfer& transfer,
                              uint64_t match_bits = 0) {
  int rc = -EAGAIN;
  const Route route = from.to(to);
  const bool ended = work({&from, &to}, [&] {
    rc = from.context->send_large(route, match_bits, area.at(), area.size(), transfer);
    return rc != -EAGAIN;
  });
  return ended ? rc : -ETIMEDOUT;
}

/// Calls send(), and has the receiver accept the request. @return false: not in time.
[[nodiscard]] inline bool begin(Node& from, Node& to, const Area& area, SendTransfer& sent,
                                const Area& place, RecvTransfer& received) {
  if (send(from, to, area, sent) != 0 || !work({&from, &to}, [&] { return to.has_request(); })) {
    return false;
  }
  to.context->receive_large(to.context->take_request(), place.at(), place.size(), received);
  return true;
}

/// Calls begin() so that the data is granted, also where the receiver's card could read it.
[[nodiscard]] inline bool begin_granted(Node& from, Node& to, const Area& area, SendTransfer& sent,
                                        const Area& place, RecvTransfer& received) {
  if (send(from, to, area, sent) != 0 || !work({&from, &to}, [&] { return to.has_request(); })) {
    return false;
  }
  from.port->rails().at(0).shown.renew();
  to.context->receive_large(to.context->take_request(), place.at(), place.size(), received);
  return work({&from, &to}, [&] { return received.granted; });
}

}  // namespace rio::msg::test
