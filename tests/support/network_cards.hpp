/// @file
/// Model cards on a simulated network with the real driver on each. Virtual time passes when the
/// test lets the network run, and a microsecond with each poll of a driver that waits.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fpga/sim/card_network.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::test {

class NetworkCards final : private sim::CardNetwork::Stepper {
 public:
  /// @param topology text for sim::NetworkTopology::create().
  NetworkCards(const std::string& topology, const model::Config& config,
               const pmd::QueuePairConfig& rings = {},
               const sim::CardNetworkSettings& settings = {}, uint32_t response_timeout_us = 2000)
      : response_timeout_us_(response_timeout_us) {
    sim::NetworkTopology shape;
    std::string error;
    EXPECT_EQ(sim::NetworkTopology::create(topology, &shape, &error), 0) << error;
    const uint32_t nodes = shape.nodes();
    EXPECT_EQ(sim::CardNetwork::create(std::move(shape), settings, *this, &network_, &error), 0)
        << error;
    clock_.network = network_.get();
    for (uint32_t node = 0; node < nodes; ++node) {
      open(node, config, rings);
    }
  }
  ~NetworkCards() {
    clock_.is_running = false;
    for (End& end : ends_) {
      end.pair.reset();
      end.card.reset();
    }
  }
  NetworkCards(const NetworkCards&) = delete;
  NetworkCards& operator=(const NetworkCards&) = delete;

  [[nodiscard]] uint32_t nodes() const { return static_cast<uint32_t>(ends_.size()); }
  [[nodiscard]] pmd::QueuePair& pair(uint32_t node) { return *ends_[node].pair; }
  [[nodiscard]] ModelBus& bus(uint32_t node) { return *ends_[node].bus; }
  [[nodiscard]] sim::CardNetwork& network() { return *network_; }
  /// destID of a node's card.
  [[nodiscard]] static uint32_t id(uint32_t node) { return sim::CardNetwork::kFirstId + node; }

  /// Called for a node whose card has been stepped, in virtual time.
  void after_step(std::function<void(uint32_t node)> call) { after_step_ = std::move(call); }
  /// The node's card looks at its rings now: after the test has posted something.
  void step(uint32_t node) {
    in_network([&] { network_->step(node); });
  }
  void run(uint64_t until_ns) {
    in_network([&] { network_->run(until_ns); });
  }
  [[nodiscard]] uint64_t now_ns() const { return network_->now_ns(); }

 private:
  /// Network time; a poll of a driver that waits lets the network run.
  class Clock final : public StepClock {
   public:
    uint64_t now_ns() override { return 1 + network->now_ns(); }
    void advance_ns(uint64_t ns) override {
      if (!is_running) {
        is_running = true;
        wanted_ns_ = std::max(wanted_ns_, network->now_ns()) + ns;
        network->run(wanted_ns_);
        is_running = false;
      }
    }
    sim::CardNetwork* network = nullptr;
    bool is_running = false;

   private:
    uint64_t wanted_ns_ = 0;
  };
  struct End {
    std::unique_ptr<ModelBus> bus;
    std::unique_ptr<pmd::Card> card;
    std::unique_ptr<pmd::QueuePair> pair;
  };

  void open(uint32_t node, const model::Config& config, const pmd::QueuePairConfig& rings) {
    End& end = ends_.emplace_back();
    end.bus = std::make_unique<ModelBus>(config, network_->plug(node), &clock_, 1000);
    ASSERT_TRUE(end.bus->ok());
    pmd::CardConfig card_config;
    card_config.dest_ids = {id(node)};
    card_config.response_timeout_us = response_timeout_us_;
    card_config.receive_timeout_us = 2 * response_timeout_us_;
    ASSERT_EQ(pmd::Card::open(*end.bus, card_config, &end.card), 0);
    ASSERT_EQ(end.card->open_queue_pair(0, rings, &end.pair), 0);
  }
  template <class Call>
  void in_network(Call&& call) {
    clock_.is_running = true;
    call();
    clock_.is_running = false;
  }
  void step_card(uint32_t node) override {
    if (node < ends_.size() && ends_[node].bus != nullptr) {
      ends_[node].bus->card().step();
      if (after_step_) {
        after_step_(node);
      }
    }
  }

  const uint32_t response_timeout_us_;
  Clock clock_;
  std::unique_ptr<sim::CardNetwork> network_;
  std::vector<End> ends_;
  std::function<void(uint32_t)> after_step_;
};

}  // namespace rio::test
