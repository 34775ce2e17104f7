/// @file
/// Ports with several cards each, on wires of their own.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {

class RailsTest : public Net {
 protected:
  static PortConfig config_of(uint32_t id, const std::string& fabrics) {
    PortConfig config = Net::config_of(id);
    config.card.clear();
    for (const char fabric : fabrics) {
      config.card += std::string(config.card.empty() ? "" : "+") + "shm:" + fabric +
                     ",id=" + std::to_string(id);
    }
    return config;
  }
  static void set_link(MessagePort& port, uint32_t rail, bool is_up) {
    port.rails().at(rail).endpoint.card().bus().bar().write32(regs::port::control(), is_up ? 1 : 0);
  }
  static uint32_t path_count(MessagePort& port, uint32_t dest_id) {
    uint32_t count = 0;
    for (const auto& path : port.known_link(dest_id)->paths) {
      count += path != nullptr && path->is_found ? 1 : 0;
    }
    return count;
  }
  static uint32_t rail_of(MessagePort& port, uint32_t dest_id) {
    return port.known_link(dest_id)->path->rail.index;
  }
  /// Loses a card: it vanishes, or its state is lost.
  static void lose(MessagePort& port, uint32_t rail, bool vanishes) {
    pmd::Bus& bus = port.rails().at(rail).endpoint.card().bus();
    model::Card& card = *dynamic_cast<pmd::EmuBus&>(bus).card();
    vanishes ? card.vanish() : card.lose_state();
  }
  /// Sends numbers `from` to `to` - 1 and takes them. @return what came, in order.
  std::vector<std::string> exchange(const Member& sender, const Route& route, const Member& taker,
                                    uint32_t from, uint32_t to) {
    std::vector<std::string> got;
    uint32_t next = from;
    EXPECT_TRUE(work_until([&] {
      while (next != to && try_send(sender, route, std::to_string(next)) == 0) {
        ++next;
      }
      while (!taker.inbox().empty()) {
        got.push_back(taker.take());
      }
      return got.size() == to - from;
    }));
    return got;
  }
  static std::vector<std::string> numbers(uint32_t from, uint32_t to) {
    std::vector<std::string> all;
    for (; from != to; ++from) {
      all.push_back(std::to_string(from));
    }
    return all;
  }
};

}  // namespace rio::msg::test
