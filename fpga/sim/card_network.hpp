/// @file
/// Model cards on a simulated network, in virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fpga/model/ends.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/sim/host_bus.hpp"
#include "fpga/sim/network.hpp"

namespace rio::sim {

struct CardNetworkSettings {
  NetworkSettings network;
  uint64_t step_ns = 40;  ///< from the cause of a request until it leaves; answers leave at once
  /// Each card is stepped at this interval of virtual time, and when a frame arrives, so that it
  /// sees its time-outs.
  uint64_t tick_ns = 10'000;
  /// Node n is a card of host n / cards_per_host. At least 1.
  uint32_t cards_per_host = 1;
  /// Bus of each host. The data of a frame that a card sends takes it before the frame leaves; the
  /// data of a frame that arrives takes it before the card sees the frame. Descriptors, completions
  /// and frames without data of the host's take no time on it.
  HostBusRates bus;
};

/// Connects model cards by a network, on which each card is a node. The caller makes a card for
/// each wire, and steps it when asked to; virtual time stands still while a card works. While run()
/// runs, nothing else may step the cards. Frames that the network loses stay in memory until its
/// end. One thread.
class CardNetwork {
 public:
  /// The destID of node 0; the others follow.
  static constexpr uint32_t kFirstId = 1;
  static constexpr uint32_t kStepsMost = 1000;

  /// The owner of the cards.
  class Stepper {
   public:
    /// Step the card of a node once, if it is there.
    virtual void step_card(uint32_t node) = 0;

   protected:
    ~Stepper() = default;
  };

  /// @param stepper outlives the network. @param error the error with its remedy; set on failure
  /// only. @return as Network::create().
  [[nodiscard]] static int create(NetworkTopology topology, const CardNetworkSettings& settings,
                                  Stepper& stepper, std::unique_ptr<CardNetwork>* out,
                                  std::string* error);
  /// The cards must have been destroyed.
  ~CardNetwork();
  CardNetwork(const CardNetwork&) = delete;
  CardNetwork& operator=(const CardNetwork&) = delete;

  /// Make the wire of a node's card. @param node one without a card.
  [[nodiscard]] std::unique_ptr<model::Wire> plug(uint32_t node);
  /// Virtual time, for the cards.
  [[nodiscard]] model::Clock& clock() { return clock_; }
  [[nodiscard]] uint64_t now_ns() const { return network_->now(); }
  [[nodiscard]] NetworkBase& network() { return *network_; }

  /// Step the card of a node at this time, at least now_ns().
  void step_at(uint64_t time_ns, uint32_t node);
  /// Step the card of a node now, until it has no frame to take and has sent none, or kStepsMost
  /// times.
  void step(uint32_t node);
  /// Handle all events up to a time. Not reentrant.
  void run(uint64_t until_ns) { network_->run(until_ns); }
  /// Handle the first events up to a time. Not reentrant. @return whether there were any.
  [[nodiscard]] bool run_next(uint64_t until_ns) { return network_->run_next(until_ns) != 0; }
  /// The bus of a host, for its figures. @param host below nodes / cards_per_host, rounded up.
  [[nodiscard]] const HostBus& bus(uint32_t host) const { return buses_[host]; }
  /// Frames that were dropped because the receiver's ring was full.
  [[nodiscard]] uint64_t overflows() const { return overflows_; }

  // Of Network: see there.
  void deliver(NetworkBase& network, const Packet& packet);
  void expire(NetworkBase& network, const NodeTimer& timer);

 private:
  class NetworkClock final : public model::Clock {
   public:
    explicit NetworkClock(const CardNetwork& network) : network_(network) {}
    uint64_t now_ns() override { return network_.now_ns(); }

   private:
    const CardNetwork& network_;
  };
  struct Port;
  class PortWire;

  CardNetwork(const CardNetworkSettings& settings, Stepper& stepper);
  [[nodiscard]] uint32_t keep(const model::InFrame& frame);
  [[nodiscard]] bool drain(uint32_t node, bool responses);
  [[nodiscard]] HostBus& bus_of(uint32_t node) { return buses_[node / settings_.cards_per_host]; }
  [[nodiscard]] uint32_t bus_bytes(uint32_t number) const;
  void depart(uint32_t node, uint32_t to, uint32_t number, bool is_response);
  void leave(const NodeTimer& timer, uint8_t kind);
  void land(uint32_t node, uint32_t number, bool is_response);
  void tick(const NodeTimer& timer);

  CardNetworkSettings settings_;
  Stepper& stepper_;
  NetworkClock clock_{*this};
  std::unique_ptr<Network<CardNetwork>> network_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<HostBus> buses_;                // of all hosts
  std::vector<std::vector<uint8_t>> frames_;  // under way, by number
  std::vector<uint32_t> free_;                // numbers
  uint64_t overflows_ = 0;
};

}  // namespace rio::sim
