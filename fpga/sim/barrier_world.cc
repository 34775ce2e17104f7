#include "fpga/sim/barrier_world.hpp"

#include <algorithm>
#include <utility>

namespace rio::sim {
namespace {

namespace barrier = model::barrier;

// Words of timers that are no destination of a notification.
constexpr uint32_t kArrival = ~0u;
constexpr uint32_t kAdvance = ~0u - 1;
constexpr uint64_t kNever = ~uint64_t{0};

}  // namespace

/// An engine, and the memory for its early notifications.
class BarrierWorld::Node final : public barrier::Ends {
 public:
  Node(BarrierWorld& world, uint32_t number)
      : world_(world),
        number_(number),
        room_(world.settings_.early),
        engine_({.response_timeout_ns = world.settings_.response_timeout_ns,
                 .retry_ns = world.settings_.retry_ns,
                 .resend_limit = world.settings_.resend_limit,
                 .own_id = number},
                *this, room_) {}

  void send(const barrier::Request& request) override {
    NetworkBase& network = *world_.network_;
    network.set_timer(network.now() + world_.settings_.step_ns,
                      {number_, request.tag, request.dest_id, request.notice.info()});
  }
  void end(const barrier::Ended& ended) override { world_.note_end(number_, ended.status); }
  void report_foreign(uint32_t /*source*/, const barrier::Notice& /*notice*/) override {}

  [[nodiscard]] barrier::BarrierEngine& engine() { return engine_; }
  /// @return whether a timer has to be set for the engine, at due_ns().
  [[nodiscard]] bool needs_timer() {
    const bool needs = engine_.due_ns() < timer_ns_;
    timer_ns_ = std::min(timer_ns_, engine_.due_ns());
    return needs;
  }
  void forget_timer(uint64_t now_ns) { timer_ns_ = timer_ns_ <= now_ns ? kNever : timer_ns_; }

 private:
  BarrierWorld& world_;
  uint32_t number_;
  barrier::EarlyRoom room_;
  uint64_t timer_ns_ = kNever;  // the earliest that is set
  barrier::BarrierEngine engine_;
};

int BarrierWorld::create(NetworkTopology topology, const BarrierSettings& settings,
                         std::unique_ptr<BarrierWorld>* out, std::string* error) {
  const uint32_t nodes = topology.nodes();
  std::unique_ptr<BarrierWorld> world(new BarrierWorld(settings));
  const int rc = Network<BarrierWorld>::create(std::move(topology), settings.network, *world,
                                               &world->network_, error);
  if (rc != 0) {
    return rc;
  }
  world->exits_ns_.resize(nodes);
  world->nodes_.reserve(nodes);
  for (uint32_t node = 0; node < nodes; ++node) {
    world->nodes_.push_back(std::make_unique<Node>(*world, node));
  }
  *out = std::move(world);
  return 0;
}

BarrierWorld::BarrierWorld(const BarrierSettings& settings) : settings_(settings) {}
BarrierWorld::~BarrierWorld() = default;

BarrierOutcome BarrierWorld::run(Schedules& schedules, std::span<const uint64_t> delays_ns,
                                 uint64_t within_ns) {
  schedules_ = &schedules;
  outcome_ = {};
  arrived_ = 0;
  std::fill(exits_ns_.begin(), exits_ns_.end(), 0);
  const auto nodes = static_cast<uint32_t>(nodes_.size());
  const uint64_t begin_ns = network_->now();
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint64_t delay_ns = node < delays_ns.size() ? delays_ns[node] : 0;
    outcome_.last_arrival_ns = std::max(outcome_.last_arrival_ns, begin_ns + delay_ns);
    network_->set_timer(begin_ns + delay_ns, {.node = node, .word = kArrival});
  }
  // In slices, so that time-outs that lie behind the last exit are not run.
  const uint64_t end_ns = begin_ns + within_ns;
  const uint64_t slice_ns = std::max<uint64_t>(settings_.response_timeout_ns / 16, 1);
  for (uint64_t until_ns = begin_ns;
       outcome_.ended + outcome_.failed < nodes && until_ns < end_ns;) {
    until_ns = std::min(until_ns + slice_ns, end_ns);
    network_->run(until_ns);
  }
  schedules_ = nullptr;
  return outcome_;
}

const barrier::Counters& BarrierWorld::counters(uint32_t node) const {
  return nodes_[node]->engine().counters();
}

void BarrierWorld::deliver(NetworkBase& network, const Packet& packet) {
  barrier::BarrierEngine& engine = nodes_[packet.destination]->engine();
  if (packet.kind == kRequest) {
    const barrier::Answer answer =
        engine.receive(network.now(), packet.source, barrier::Notice::of(packet.info));
    network.send({.source = packet.destination,
                  .destination = packet.source,
                  .tag = packet.tag,
                  .info = static_cast<uint16_t>(answer),
                  .kind = kResponse});
  } else {
    engine.answered(network.now(), packet.tag, static_cast<barrier::Answer>(packet.info));
  }
  update_timer(packet.destination);
}

void BarrierWorld::expire(NetworkBase& network, const NodeTimer& timer) {
  Node& node = *nodes_[timer.node];
  if (timer.word == kArrival) {
    regs::BarrierDesc desc{};
    schedules_->describe(timer.node, &desc);
    ++arrived_;
    node.engine().post(network.now(), desc, 0);
  } else if (timer.word == kAdvance) {
    node.forget_timer(network.now());
    node.engine().advance(network.now());
  } else {
    network.send({.source = timer.node,
                  .destination = timer.word,
                  .tag = timer.tag,
                  .info = timer.info,
                  .kind = kRequest});
    return;
  }
  update_timer(timer.node);
}

void BarrierWorld::update_timer(uint32_t node) {
  if (nodes_[node]->needs_timer()) {
    network_->set_timer(nodes_[node]->engine().due_ns(), {.node = node, .word = kAdvance});
  }
}

void BarrierWorld::note_end(uint32_t node, regs::Status status) {
  if (status != regs::Status::kOk) {
    ++outcome_.failed;
    return;
  }
  ++outcome_.ended;
  outcome_.violations += arrived_ != nodes_.size() ? 1 : 0;
  outcome_.last_exit_ns = exits_ns_[node] = network_->now();
}

}  // namespace rio::sim
