/// @file
/// Hosts with model cards on a simulated network, whose message ports one thread polls in turn, in
/// virtual time.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "fpga/sim/card_network.hpp"
#include "lib/msg/message_port.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::test {

struct VirtualHostsSettings {
  std::string topology = "mesh:2";  ///< for sim::NetworkTopology::create(); a node is a card
  model::Config card = exact_card();
  sim::CardNetworkSettings network;
  uint64_t poll_ns = 1000;      ///< between two polls of a host whose cards are silent; at least 1
  std::vector<int> numa_nodes;  ///< of the cards of a host; empty: unknown
  uint64_t host_ns = 0;         ///< that a host needs for each thing that it does
};

/// While it exists, base::now_ns() is its time; a program has one of them at a time. A host polls
/// when one of its cards has had an event, and every poll_ns. One thread.
class VirtualHosts final : private sim::CardNetwork::Stepper {
 public:
  /// Polls of the cards without any time passing after which time passes nevertheless: the program
  /// waits inside of a call of the library.
  static constexpr uint32_t kPollsMost = 4096;
  static constexpr uint64_t kWaitNs = 10'000;  ///< that passes with each further poll

  /// @return as sim::CardNetwork::create().
  [[nodiscard]] static int create(const VirtualHostsSettings& settings,
                                  std::unique_ptr<VirtualHosts>* out, std::string* error) {
    sim::NetworkTopology topology;
    std::unique_ptr<VirtualHosts> made(new VirtualHosts(settings));
    int rc = sim::NetworkTopology::create(settings.topology, &topology, error);
    const uint32_t nodes = rc == 0 ? topology.nodes() : 0;
    rc = rc != 0 ? rc
                 : sim::CardNetwork::create(std::move(topology), settings.network, *made,
                                            &made->network_, error);
    if (rc == 0) {
      made->buses_.resize(nodes);
      made->hosts_.resize(made->host_of(nodes - 1) + 1);
      *out = std::move(made);
    }
    return rc;
  }
  /// The ports must be closed.
  ~VirtualHosts() {
    base::set_clock(&base::monotonic_ns);
    current = nullptr;
  }
  VirtualHosts(const VirtualHosts&) = delete;
  VirtualHosts& operator=(const VirtualHosts&) = delete;

  /// Open a port on all cards of a host. @param config its destID, card and profile are not used.
  /// @return as msg::MessagePort::open().
  [[nodiscard]] int open(uint32_t host, msg::PortConfig config,
                         std::unique_ptr<msg::MessagePort>* out) {
    const uint32_t count = settings_.network.cards_per_host;
    std::vector<msg::MessagePort::BusCard> cards;
    for (uint32_t node = host * count; node < (host + 1) * count; ++node) {
      auto bus = std::make_unique<NodeBus>(*this, node);
      if (!bus->ok()) {
        return -EINVAL;
      }
      config.card = bus->name();
      if (!settings_.numa_nodes.empty()) {
        bus->set_numa_node(settings_.numa_nodes[node - host * count]);
      }
      buses_[node] = bus.get();
      cards.push_back({std::move(bus), id(node)});
    }
    config.profile = "none";
    return msg::MessagePort::open(std::move(cards), config, out);
  }
  /// destID of a node's card.
  [[nodiscard]] static uint32_t id(uint32_t node) { return sim::CardNetwork::kFirstId + node; }
  [[nodiscard]] sim::CardNetwork& network() { return *network_; }
  /// The model card of a node that has a port.
  [[nodiscard]] model::Card& card(uint32_t node) { return buses_[node]->card(); }
  /// Virtual time; never 0.
  [[nodiscard]] uint64_t now_ns() const { return 1 + network_->now_ns(); }

  /// Let the hosts poll in turn, and time pass while they have nothing to do. @param turn(host)
  /// lets a host poll once; returns how many things it has done. @param done() asked after each
  /// round. @return false: it was not done within limit_ns.
  template <class Turn, class Done>
  [[nodiscard]] bool run(const Turn& turn, const Done& done, uint64_t limit_ns) {
    for (const uint64_t end_ns = now_ns() + limit_ns; now_ns() < end_ns; pass()) {
      for (uint32_t host = 0; host < hosts_.size(); ++host) {
        if (hosts_[host].due_ns() <= network_->now_ns()) {
          poll(hosts_[host], [&] { return turn(host); });
        }
      }
      if (done()) {
        return true;
      }
    }
    return false;
  }

 private:
  struct Host {
    uint64_t free_ns = 0;    // it does nothing until then
    uint64_t poll_ns = 0;    // when it polls although its cards are silent
    bool has_event = false;  // a card has had an event since the last poll

    [[nodiscard]] uint64_t due_ns() const { return has_event ? free_ns : poll_ns; }
  };
  class Clock final : public StepClock {
   public:
    explicit Clock(const VirtualHosts& hosts) : hosts_(hosts) {}
    uint64_t now_ns() override { return hosts_.now_ns(); }
    void advance_ns(uint64_t /*ns*/) override {}

   private:
    const VirtualHosts& hosts_;
  };

  /// A bus whose polls step the card within the network.
  class NodeBus final : public ModelBus {
   public:
    NodeBus(VirtualHosts& hosts, uint32_t node)
        : ModelBus(hosts.settings_.card, hosts.network_->plug(node), &hosts.clock_, 0),
          hosts_(hosts),
          node_(node) {}
    ~NodeBus() override { hosts_.buses_[node_] = nullptr; }
    NodeBus(const NodeBus&) = delete;
    NodeBus& operator=(const NodeBus&) = delete;

    [[nodiscard]] pmd::PollHook step_hook(uint32_t /*qp*/) override {
      return {&NodeBus::poll, this};
    }
    [[nodiscard]] pmd::PollHook step_to_receive_hook(uint32_t /*qp*/) override {
      return {&NodeBus::poll, this};
    }

   private:
    static void poll(void* ctx) noexcept {
      const auto* const self = static_cast<NodeBus*>(ctx);
      self->hosts_.poll_card(self->node_);
    }

    VirtualHosts& hosts_;
    const uint32_t node_;
  };

  explicit VirtualHosts(const VirtualHostsSettings& settings) : settings_(settings) {
    assert(current == nullptr && settings.poll_ns != 0);
    current = this;
    base::set_clock([] { return current->now_ns(); });
  }

  [[nodiscard]] uint32_t host_of(uint32_t node) const {
    return node / settings_.network.cards_per_host;
  }
  template <class Turn>
  void poll(Host& host, const Turn& turn) {
    host.has_event = false;
    const uint32_t things = turn();
    const uint64_t now_ns = network_->now_ns();
    host.has_event = host.has_event || things != 0;
    host.free_ns = now_ns + things * settings_.host_ns;
    host.poll_ns = std::max(host.free_ns, now_ns + settings_.poll_ns);
  }
  /// Go on to the next event, or to the time of the next poll.
  void pass() {
    uint64_t due_ns = UINT64_MAX;
    for (const Host& host : hosts_) {
      due_ns = std::min(due_ns, host.due_ns());
    }
    polls_ = 0;
    const uint64_t now_ns = network_->now_ns();
    if (due_ns > now_ns && !network_->run_next(due_ns)) {
      network_->step_at(due_ns, 0);  // an event, so that the network's time gets there
      network_->run(due_ns);
    }
  }
  void poll_card(uint32_t node) {
    is_polling_ = true;
    network_->step(node);
    is_polling_ = false;
    if (++polls_ > kPollsMost) {
      network_->run(network_->now_ns() + kWaitNs);
    }
  }
  void step_card(uint32_t node) override {
    if (buses_[node] != nullptr) {
      buses_[node]->card().step();
      hosts_[host_of(node)].has_event |= !is_polling_;
    }
  }

  inline static VirtualHosts* current = nullptr;
  const VirtualHostsSettings settings_;
  Clock clock_{*this};
  std::unique_ptr<sim::CardNetwork> network_;
  std::vector<NodeBus*> buses_;  // by node; the ports own them
  std::vector<Host> hosts_;
  uint32_t polls_ = 0;  // since time has passed in run()
  bool is_polling_ = false;
};

}  // namespace rio::test
