/// @file
/// Members of the UDP wire, with the test in place of the card.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fpga/wire/udp/udp_wire.hpp"
#include "tests/support/wait.hpp"

namespace rio::wire::udp {

/// A wire with the test as its card.
class Card {
 public:
  explicit Card(const Seat& seat) {
    std::string error;
    EXPECT_EQ(UdpWire::join(seat, &wire, &error), 0) << error;
  }
  [[nodiscard]] uint32_t find(const Card& other) const {
    uint32_t id = 0;
    EXPECT_EQ(wire->reach(other.wire->address(), &id), 0);
    return id;
  }
  void step() {
    wire->pump(0);
    model::PartnerChange change{};
    while (wire->next_change(&change)) {
      changes.push_back(change);
    }
    for (model::Inbound& in : wire->inbound()) {
      for (const model::InFrame* f = in.requests->peek(); f != nullptr; f = in.requests->peek()) {
        EXPECT_LE(f->source - in.first_source, in.more_sources);
        EXPECT_EQ(f->dest, wire->first_id());
        from.push_back(f->source);
        got.emplace_back(reinterpret_cast<const char*>(f->payload()), f->length);
        in.requests->pop(f);
        in.requests->release();
      }
    }
  }
  /// Sends a text. @return false: there is no path, or no room.
  bool send(uint32_t to, const std::string& text) {
    model::Outbound* const way = wire->route(to);
    const uint32_t bytes = model::frame_bytes(static_cast<uint32_t>(text.size()));
    model::Frame* const frame = way == nullptr ? nullptr : way->requests->reserve(bytes);
    if (frame == nullptr) {
      return false;
    }
    frame->clear();
    frame->type = model::FrameType::kMessage;
    frame->source = wire->first_id();
    frame->dest = to;
    frame->length = static_cast<uint16_t>(text.size());
    std::memcpy(frame->payload(), text.data(), text.size());
    way->requests->commit(frame, bytes);
    way->requests->publish();
    return true;
  }
  /// All reports to the user, joined.
  [[nodiscard]] std::string troubles() const {
    std::string all;
    for (std::string text; wire->next_trouble(&text);) {
      all += text + "\n";
    }
    return all;
  }

  std::unique_ptr<UdpWire> wire;
  std::vector<std::string> got;
  std::vector<uint32_t> from;  ///< senders of the texts in `got`
  std::vector<model::PartnerChange> changes;
};

[[nodiscard]] inline Seat seat(const std::string& bind = "127.0.0.1") {
  Seat out;
  out.fabric = "test";
  out.bind = bind;
  return out;
}

/// Steps both wires until a condition holds. @return false: it never did.
[[nodiscard]] inline bool both_until(Card& a, Card& b, const std::function<bool()>& done) {
  return test::wait_until([&] {
    a.step();
    b.step();
    return done();
  });
}

}  // namespace rio::wire::udp
