#include "fpga/sim/card_network.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace rio::sim {
namespace {

constexpr uint32_t kRingBytes = 64 * 1024;
// NodeTimer::info
constexpr uint16_t kLeave = 0;         ///< let a request leave
constexpr uint16_t kStep = 1;          ///< step a card
constexpr uint16_t kTick = 2;          ///< step all cards
constexpr uint16_t kAnswer = 3;        ///< let a response leave
constexpr uint16_t kLandRequest = 4;   ///< give a request that is in memory to its card
constexpr uint16_t kLandResponse = 5;  ///< give a response that is in memory to its card
/// A card's upkeep is spread over some steps.
constexpr uint32_t kStepsPerTick = 16;

[[nodiscard]] model::Frame header_of(const std::vector<uint8_t>& frame) {
  model::Frame header;
  std::memcpy(&header, frame.data(), sizeof(header));
  return header;
}

/// Length of a kept frame's payload, in bytes.
[[nodiscard]] uint16_t payload_of(const std::vector<uint8_t>& frame) {
  const model::Frame header = header_of(frame);
  return static_cast<uint16_t>(model::payload_bytes(header.type, header.op, header.length));
}

/// Whether a frame's payload comes from a host's memory and goes to one.
[[nodiscard]] bool carries_memory(model::FrameType type) {
  return type == model::FrameType::kMessage || type == model::FrameType::kSegment ||
         type == model::FrameType::kRequest || type == model::FrameType::kResponse;
}

}  // namespace

/// The rings between a card and the network.
struct CardNetwork::Port {
  model::RingBox requests_out{kRingBytes};
  model::RingBox responses_out{kRingBytes};
  model::RingBox requests_in{kRingBytes};
  model::RingBox responses_in{kRingBytes};
  model::Outbound out{&requests_out.writer, &responses_out.writer};
  model::Inbound in{&requests_in.reader, &responses_in.reader};
  bool is_plugged = false;
};

class CardNetwork::PortWire final : public model::Wire {
 public:
  explicit PortWire(Port& port) : port_(port) {
    inbound_ = {&port.in, 1};
    port_.is_plugged = true;
  }
  ~PortWire() override { port_.is_plugged = false; }
  PortWire(const PortWire&) = delete;
  PortWire& operator=(const PortWire&) = delete;

  model::Outbound* route(uint32_t /*dest_id*/) override { return &port_.out; }
  [[nodiscard]] bool link_up() const override { return true; }

 private:
  Port& port_;
};

CardNetwork::CardNetwork(const CardNetworkSettings& settings, Stepper& stepper)
    : settings_(settings), stepper_(stepper) {}
CardNetwork::~CardNetwork() = default;

int CardNetwork::create(NetworkTopology topology, const CardNetworkSettings& settings,
                        Stepper& stepper, std::unique_ptr<CardNetwork>* out, std::string* error) {
  const uint32_t nodes = topology.nodes();
  std::unique_ptr<CardNetwork> made(new CardNetwork(settings, stepper));
  const int rc = Network<CardNetwork>::create(std::move(topology), settings.network, *made,
                                              &made->network_, error);
  if (rc != 0) {
    return rc;
  }
  for (uint32_t node = 0; node < nodes; ++node) {
    made->ports_.push_back(std::make_unique<Port>());
  }
  assert(settings.cards_per_host != 0);
  made->buses_.assign((nodes + settings.cards_per_host - 1) / settings.cards_per_host,
                      HostBus(settings.bus));
  made->network_->set_timer(settings.tick_ns, {.info = kTick});
  *out = std::move(made);
  return 0;
}

std::unique_ptr<model::Wire> CardNetwork::plug(uint32_t node) {
  assert(!ports_[node]->is_plugged);
  return std::make_unique<PortWire>(*ports_[node]);
}

void CardNetwork::step_at(uint64_t time_ns, uint32_t node) {
  network_->set_timer(time_ns, {.node = node, .info = kStep});
}

/// Copy a frame. @return its number.
uint32_t CardNetwork::keep(const model::InFrame& frame) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(frames_.size()));
    frames_.emplace_back();
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  std::vector<uint8_t>& bytes = frames_[number];
  bytes.resize(frame.bytes);
  const model::Frame& header = frame;
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), frame.payload(), frame.bytes - sizeof(header));
  return number;
}

/// Take the frames that a card has sent. @return whether there was one.
bool CardNetwork::drain(uint32_t node, bool responses) {
  Port& port = *ports_[node];
  model::RingBox& ring = responses ? port.responses_out : port.requests_out;
  bool any = false;
  while (const model::InFrame* const frame = ring.reader.peek()) {
    any = true;
    const uint32_t to = frame->dest - kFirstId;
    if (to < ports_.size()) {  // others have no route
      depart(node, to, keep(*frame), responses);
    }
    ring.reader.pop(frame);
  }
  ring.reader.release();
  return any;
}

void CardNetwork::step(uint32_t node) {
  Port& port = *ports_[node];
  bool more = port.is_plugged;
  for (uint32_t i = 0; more && i < kStepsMost; ++i) {
    stepper_.step_card(node);
    // Requests first: the card makes the requests that a frame causes before its answer.
    const bool sent_requests = drain(node, false);
    const bool sent_responses = drain(node, true);
    more = sent_requests || sent_responses || port.requests_in.reader.peek() != nullptr ||
           port.responses_in.reader.peek() != nullptr;
  }
}

/// @param number of a kept frame. @return bytes that it needs of a bus; 0: it needs none.
uint32_t CardNetwork::bus_bytes(uint32_t number) const {
  const std::vector<uint8_t>& frame = frames_[number];
  return settings_.bus.any() && carries_memory(header_of(frame).type) ? payload_of(frame) : 0;
}

/// A card has made a frame: fetch its data over the bus, and let it leave.
void CardNetwork::depart(uint32_t node, uint32_t to, uint32_t number, bool is_response) {
  const uint32_t bytes = bus_bytes(number);
  const uint64_t ready_ns = bytes != 0 ? bus_of(node).read(now_ns(), bytes) : now_ns();
  const NodeTimer timer{
      .node = node, .tag = number, .word = to, .info = is_response ? kAnswer : kLeave};
  if (!is_response) {
    network_->set_timer(ready_ns + settings_.step_ns, timer);
  } else if (bytes != 0) {
    network_->set_timer(ready_ns, timer);
  } else {
    leave(timer, kResponse);
  }
}

void CardNetwork::leave(const NodeTimer& timer, uint8_t kind) {
  network_->send({.source = timer.node,
                  .destination = timer.word,
                  .tag = timer.tag,
                  .len_bytes = payload_of(frames_[timer.tag]),
                  .kind = kind});
}

void CardNetwork::deliver(NetworkBase& network, const Packet& packet) {
  const uint32_t node = packet.destination;
  const bool is_response = packet.kind == kResponse;
  const uint32_t bytes = bus_bytes(packet.tag);
  if (bytes != 0) {
    const auto info = is_response ? kLandResponse : kLandRequest;
    network.set_timer(bus_of(node).write(now_ns(), bytes),
                      {.node = node, .tag = packet.tag, .info = info});
  } else {
    land(node, packet.tag, is_response);
  }
}

/// Give a frame to its card, and step that.
void CardNetwork::land(uint32_t node, uint32_t number, bool is_response) {
  Port& port = *ports_[node];
  model::RingBox& ring = is_response ? port.responses_in : port.requests_in;
  const std::vector<uint8_t>& bytes = frames_[number];
  const auto size = static_cast<uint32_t>(bytes.size());
  model::Frame* const frame = port.is_plugged ? ring.writer.reserve(size) : nullptr;
  if (frame != nullptr) {
    auto* const to = reinterpret_cast<uint8_t*>(frame);
    std::memcpy(to + sizeof(frame->bytes), bytes.data() + sizeof(frame->bytes),
                size - sizeof(frame->bytes));
    ring.writer.commit(frame, size);
    ring.writer.publish();
  } else {
    overflows_ += port.is_plugged ? 1 : 0;
  }
  free_.push_back(number);
  if (frame != nullptr) {
    step(node);
  }
}

void CardNetwork::tick(const NodeTimer& timer) {
  network_->set_timer(now_ns() + settings_.tick_ns, timer);
  for (uint32_t node = 0; node < ports_.size(); ++node) {
    for (uint32_t i = 0; i < kStepsPerTick; ++i) {
      step(node);
    }
  }
}

void CardNetwork::expire(NetworkBase& /*network*/, const NodeTimer& timer) {
  switch (timer.info) {
    case kStep:
      return step(timer.node);
    case kTick:
      return tick(timer);
    case kLandRequest:
    case kLandResponse:
      return land(timer.node, timer.tag, timer.info == kLandResponse);
    default:
      return leave(timer, timer.info == kAnswer ? kResponse : kRequest);
  }
}

}  // namespace rio::sim
