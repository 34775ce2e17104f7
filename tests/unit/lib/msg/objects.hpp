/// @file
/// The objects of a port without the port, on a card that is wired to itself: for unit tests of
/// single objects.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>

#include "lib/msg/inflows.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/rail.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/sorter.hpp"
#include "lib/msg/speaker.hpp"

namespace rio::msg::test {

/// A card that is wired to itself: messages to its own destID come back.
struct LoopCard {
  explicit LoopCard(uint32_t response_timeout_us = 100'000) {
    EndpointConfig config;
    config.card.response_timeout_us = response_timeout_us;
    config.card.receive_timeout_us = 2 * response_timeout_us;
    config.card.retry_limit = 2;
    config.card.retry_delay_us = 1;
    EXPECT_EQ(Endpoint::open("emu:loop", config, &endpoint), 0);
  }
  std::unique_ptr<Endpoint> endpoint;
};

struct Objects {
  static constexpr uint32_t kBuffers = 256;
  static constexpr uint32_t kShare = 16;
  static constexpr uint32_t kOwn = 7;         // our destID, as sessions know it
  static constexpr uint32_t kInstance = 100;  // ours
  static constexpr uint32_t kTimeoutUs = 1000;
  static constexpr uint32_t kDeliverMs = 1;

  PortConfig config;
  LoopCard card{kTimeoutUs};
  Endpoint& endpoint = *card.endpoint;
  PortStats stats;
  ContextSlots contexts{};
  Rails rails{endpoint, all()};
  Peers peers{1, config, rails};
  Paths paths{all()};
  Buffers buffers;
  Inflows inflows{kBuffers, kShare, peers, contexts};
  ListeningClock listening;
  Retries retries{peers, listening, stats};
  LargeControl control;
  Speaker speaker{all(), kInstance};
  Large large{all()};
  Sessions sessions{all(), kOwn};
  Sorter sorter{all()};
  Outbox& outbox = rails.first().outbox;
  Silence& silence = rails.first().silence;

  PortObjects all() {
    return {config,  rails,   buffers, peers,    paths,  large,     control, contexts,
            inflows, retries, speaker, sessions, sorter, listening, stats};
  }

  Objects() {
    config.buffers = kBuffers;
    config.connect_ms = 1000;
    config.deliver_ms = kDeliverMs;
    config.response_timeout_us = kTimeoutUs;
    EXPECT_EQ(buffers.create(endpoint, kBuffers), 0);
    EXPECT_EQ(rails.first().start(), 0);
  }

  /// Makes a peer with a session. The peer is the card itself, which answers each letter.
  Link& peer_with_session() {
    Link& link = *peers.find_or_make(endpoint.dest_id());
    link.keys.remote = 55;
    link.next_out = HeaderWords::key_and_number(55, 0);
    sessions.begin(link);
    return link;
  }
};

/// Works until `done()`. @return false: it did not become true in time.
template <class Done>
[[nodiscard]] bool until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
  }
  return true;
}

}  // namespace rio::msg::test
