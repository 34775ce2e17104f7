#include "fpga/wire/switched/fabric.hpp"

#include <cassert>
#include <cerrno>
#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"
#include "fpga/wire/frame_check.hpp"

namespace rio::wire::switched {
namespace {

using model::Frame;
using model::FrameType;
using regs::MaintOp;

constexpr uint32_t kTurns = 2;           // a request, and the answer to it
constexpr uint32_t kFramesPerTurn = 64;  // of one ring, so that one card cannot occupy the thread
constexpr uint32_t kPluggedRingBytes = 64 * 1024;
constexpr uint32_t kOwnRingBytes = 16 * 1024;
constexpr uint32_t kMaxHops = 0xFF;
constexpr uint32_t kAnotherHost = 0xFFFFFFFF;  // a host that has left locks and tags behind

/// A card's end of the fabric.
class FabricWire final : public model::Wire {
 public:
  /// @param keep null for the fabric's own cards, which the fabric steps and outlives.
  FabricWire(std::shared_ptr<Fabric> keep, Device& device)
      : keep_(std::move(keep)),
        device_(device),
        out_{&device.socket->out_requests.writer, &device.socket->out_responses.writer},
        in_{&device.socket->in_requests.reader, &device.socket->in_responses.reader} {
    inbound_ = {&in_, 1};
    pumps_ = keep_ != nullptr;
  }
  ~FabricWire() override {
    if (keep_ != nullptr) {
      keep_->unplug(device_);
    }
  }
  FabricWire(const FabricWire&) = delete;
  FabricWire& operator=(const FabricWire&) = delete;

  model::Outbound* route(uint32_t /*dest_id*/) override { return &out_; }
  bool link_up() const override { return device_.link_up.load(std::memory_order_relaxed); }
  void pump(uint64_t /*now_ns*/) override { keep_->pump(); }

 private:
  std::shared_ptr<Fabric> keep_;
  Device& device_;
  model::Outbound out_;
  model::Inbound in_;
};

/// Whether a switch can carry out a maintenance request; if not, it answers ERROR.
bool is_sane_maintenance(const Frame& head) {
  const auto op = static_cast<MaintOp>(head.op);
  if (head.length < 4 || head.length > regs::kMaintBytesMax || head.length % 4 != 0 ||
      head.address % 4 != 0 || head.address >= 1u << 24) {
    return false;
  }
  return op == MaintOp::kRead ||
         (op == MaintOp::kWrite && model::frame_bytes(head.length) <= head.bytes);
}

}  // namespace

Fabric::Fabric(Topology topology, std::unique_ptr<model::Clock> clock)
    : topology_(std::move(topology)),
      clock_(std::move(clock)),
      devices_(topology_.devices.size()),
      random_(topology_.loss_seed),
      lost_(topology_.loss_rate) {
  if (clock_ == nullptr) {
    clock_ = std::make_unique<model::HostClock>();
  }
}

int Fabric::build() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    device.spec = topology_.devices[i];
    device.peers.resize(device.spec.ports);
    if (device.spec.is_switch) {
      device.registers.emplace(device.spec);
      ++switches_;
    }
  }
  for (const LinkSpec& link : topology_.links) {
    for (int end = 0; end < 2; ++end) {
      devices_[link.ends[end].device].peers[link.ends[end].port] = link.ends[1 - end];
    }
  }
  for (Device& device : devices_) {
    show_link(device, false);
    if (!device.spec.is_switch) {
      if (const int rc = own_card(device); rc != 0) {
        return rc;
      }
    }
  }
  return 0;
}

Device* Fabric::find(const std::string& name) {
  for (Device& device : devices_) {
    if (device.spec.name == name) {
      return &device;
    }
  }
  return nullptr;
}

int Fabric::own_card(Device& device) {
  device.card.reset();  // destroyed before its rings
  device.socket = std::make_unique<Socket>(kOwnRingBytes);
  device.card = EndpointCard::create(std::make_unique<FabricWire>(nullptr, device), clock_.get());
  if (device.card == nullptr) {
    return -ENOMEM;
  }
  const DeviceSpec& spec = device.spec;
  if (spec.locked_by != kUnlocked) {
    preset(device, SwitchOffset::kHostLock, spec.locked_by);
  }
  if (spec.tag != 0) {
    preset(device, SwitchOffset::kComponentTag, spec.tag);
  }
  if (spec.dest_id != DeviceSpec{}.dest_id) {
    constexpr uint32_t kBaseDeviceId = 0x60;
    preset(device, kBaseDeviceId, (spec.dest_id & 0xFF) << 16 | spec.dest_id);
  }
  return 0;
}

// Writes a register as an earlier host would have done. The card's answer is dropped.
void Fabric::preset(Device& device, uint32_t offset, uint32_t value) {
  const bool up = device.link_up.exchange(true);
  model::FrameWriter& writer = device.socket->in_requests.writer;
  Frame* const frame = writer.reserve(model::frame_bytes(sizeof(value)));
  assert(frame != nullptr);  // the ring is empty
  frame->clear();
  frame->type = FrameType::kMaintRequest;
  frame->op = static_cast<uint8_t>(MaintOp::kWrite);
  frame->hops = kMaxHops;
  frame->source = kAnotherHost;
  frame->length = sizeof(value);
  frame->address = offset;
  std::memcpy(frame->payload(), &value, sizeof(value));
  writer.commit(frame, model::frame_bytes(sizeof(value)));
  writer.publish();
  device.card->step();
  model::FrameReader& reader = device.socket->out_responses.reader;
  while (const model::InFrame* response = reader.peek()) {
    reader.pop(response);
  }
  reader.release();
  device.link_up = up;
}

// Updates the state of all links of a device, at both ends.
void Fabric::show_link(Device& device, bool tell) {
  for (uint32_t port = 0; port < device.spec.ports; ++port) {
    const std::optional<PortName>& peer = device.peers[port];
    if (!peer.has_value()) {
      continue;
    }
    Device& other = devices_[peer->device];
    const bool up = device.spec.present && other.spec.present;
    if (device.registers.has_value()) {
      device.registers->set_port(port, up);
    } else {
      device.link_up = up;
    }
    if (!other.registers.has_value()) {
      other.link_up = up;
      continue;
    }
    other.registers->set_port(peer->port, up);
    if (tell && other.spec.present) {
      tell_port(other, peer->port);
    }
  }
}

// Sends a port-write; without a route or without room it is lost. RIO Part 1 §4.1.10
void Fabric::tell_port(Device& device, uint32_t port) {
  const auto payload = device.registers->port_write(port);
  alignas(Frame) uint8_t bytes[model::frame_bytes(sizeof(payload))] = {};
  auto* frame = reinterpret_cast<Frame*>(bytes);
  frame->bytes = sizeof(bytes);
  frame->type = FrameType::kPortWrite;
  frame->op = static_cast<uint8_t>(MaintOp::kPortWrite);
  frame->hops = kMaxHops;
  frame->dest = device.registers->port_write_target();
  frame->length = sizeof(payload);
  std::memcpy(frame->payload(), payload.data(), sizeof(payload));
  const uint32_t out_port = device.registers->route(frame->dest);
  Stop stop{Stop::kUnrouted};
  if (out_port < device.spec.ports) {
    stop = follow({static_cast<size_t>(&device - devices_.data()), out_port}, *frame);
  }
  if (stop.kind == Stop::kEndpoint) {
    static_cast<void>(deliver(stop, *frame, frame->payload()));
  } else {
    count(stop.kind);
  }
}

int Fabric::plug(const std::string& endpoint, std::unique_ptr<model::Wire>* out) {
  const std::lock_guard lock(mutex_);
  Device* device = find(endpoint);
  if (device == nullptr || device->spec.is_switch) {
    return -ENOENT;
  }
  if (device->plugged) {
    return -EBUSY;
  }
  device->card.reset();
  device->socket = std::make_unique<Socket>(kPluggedRingBytes);
  device->plugged = true;
  std::erase(busy_, device);
  device->busy = false;
  plugged_.push_back(device);
  *out = std::make_unique<FabricWire>(shared_from_this(), *device);
  return 0;
}

void Fabric::unplug(Device& device) {
  const std::lock_guard lock(mutex_);
  device.plugged = false;
  std::erase(plugged_, &device);
  if (own_card(device) != 0) {
    device.spec.silent = true;
  }
}

int Fabric::set_device(const std::string& name, bool present) {
  const std::lock_guard lock(mutex_);
  Device* device = find(name);
  if (device == nullptr) {
    return -ENOENT;
  }
  if (device->spec.present == present) {
    return 0;
  }
  device->spec.present = present;
  if (present) {
    device->spec.locked_by = kUnlocked;
    device->spec.tag = 0;
    device->spec.dest_id = DeviceSpec{}.dest_id;
    device->spec.routes.clear();
    if (device->spec.is_switch) {
      device->registers.emplace(device->spec);
    } else if (!device->plugged) {
      if (const int rc = own_card(*device); rc != 0) {
        return rc;
      }
    }
  }
  show_link(*device, true);
  return 0;
}

int Fabric::set_silent(const std::string& name, bool silent) {
  const std::lock_guard lock(mutex_);
  Device* device = find(name);
  if (device == nullptr) {
    return -ENOENT;
  }
  device->spec.silent = silent;
  return 0;
}

FabricCounts Fabric::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Fabric::pump() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return;
  }
  for (uint32_t i = 0; i < kTurns; ++i) {
    for (Device* device : plugged_) {
      turn(*device);
    }
    work_own_cards();
  }
}

void Fabric::turn(Device& device) {
  drain(device, device.socket->out_responses.reader, true);
  drain(device, device.socket->out_requests.reader, false);
}

void Fabric::work_own_cards() {
  const std::vector<Device*> now = std::move(busy_);
  busy_.clear();
  for (Device* device : now) {
    device->busy = false;
    device->card->step();
    turn(*device);
    const Socket& socket = *device->socket;
    const auto waits = [](model::FrameReader reader) { return reader.peek() != nullptr; };
    if ((waits(socket.in_requests.reader) || waits(socket.out_responses.reader)) && !device->busy) {
      device->busy = true;
      busy_.push_back(device);
    }
  }
}

void Fabric::drain(Device& from, model::FrameReader& reader, bool response) {
  uint32_t left = kFramesPerTurn;
  while (const model::InFrame* frame = left-- > 0 ? reader.peek() : nullptr) {
    if (!may_travel(*frame, response)) {
      ++counts_.malformed;
    } else if (!carry(from, *frame, frame->payload())) {
      break;  // no room at its destination
    }
    reader.pop(frame);
  }
  reader.release();
}

// Returns false if the frame has to wait.
bool Fabric::carry(Device& from, const Frame& head, const uint8_t* payload) {
  const Stop stop = follow({static_cast<size_t>(&from - devices_.data()), 0}, head);
  switch (stop.kind) {
    case Stop::kEndpoint:
      return deliver(stop, head, payload);
    case Stop::kSwitch:
      if (head.type == FrameType::kMaintRequest) {
        return answer(stop, head, payload);
      }
      ++counts_.unrouted;  // a switch does not receive port-writes
      return true;
    default:
      count(stop.kind);
      return true;
  }
}

Stop Fabric::follow(PortName from, const Frame& head) const {
  // Switches count hops of such a frame and may stop it, instead of only passing it on.
  const bool counts_hops =
      head.type == FrameType::kMaintRequest || head.type == FrameType::kPortWrite;
  uint32_t hops = head.hops;
  for (uint32_t passed = 0;; ++passed) {
    const std::optional<PortName>& next = devices_[from.device].peers[from.port];
    if (!devices_[from.device].spec.present || !next.has_value()) {
      return {Stop::kAbsent};
    }
    const Device& device = devices_[next->device];
    if (!device.spec.present || device.spec.silent) {
      return {Stop::kAbsent};
    }
    if (!device.spec.is_switch) {
      return {Stop::kEndpoint, next->device, 0, hops};
    }
    if (counts_hops) {
      if (hops == 0) {
        return {Stop::kSwitch, next->device, next->port, 0};
      }
      --hops;
    } else if (passed >= switches_) {
      return {Stop::kLooped};  // a switch was passed twice
    }
    const uint32_t port = device.registers->route(head.dest);
    if (port >= device.spec.ports) {
      return {Stop::kUnrouted};
    }
    from = {next->device, port};
  }
}

void Fabric::count(Stop::Kind kind) {
  ++(kind == Stop::kUnrouted ? counts_.unrouted
     : kind == Stop::kLooped ? counts_.looped
                             : counts_.absent);
}

bool Fabric::deliver(const Stop& stop, const Frame& head, const uint8_t* payload) {
  Device& to = devices_[stop.device];
  model::RingBox& ring =
      is_response(head.type) == true ? to.socket->in_responses : to.socket->in_requests;
  if (!ring.writer.fits(head.bytes)) {
    return false;
  }
  if (loses()) {
    ++counts_.lost;
    return true;
  }
  Frame arrived = head;
  arrived.hops = static_cast<uint8_t>(stop.hops);
  static_cast<void>(put_frame(ring.writer, arrived, payload));  // it fits
  ring.writer.publish();
  ++counts_.delivered;
  if (!to.plugged && !to.busy) {
    to.busy = true;
    busy_.push_back(&to);
  }
  return true;
}

// A switch answers through the port that the request came in by; from there the answer is routed by
// the requester's destID. RIO Part 3 §2.4
bool Fabric::answer(const Stop& stop, const Frame& head, const uint8_t* payload) {
  const bool sane = is_sane_maintenance(head);
  const bool read = static_cast<MaintOp>(head.op) == MaintOp::kRead;
  alignas(Frame) uint8_t bytes[model::frame_bytes(regs::kMaintBytesMax)] = {};
  auto* response = reinterpret_cast<Frame*>(bytes);
  response->length = sane && read ? head.length : uint16_t{0};
  response->bytes = model::frame_bytes(response->length);
  response->type = FrameType::kMaintResponse;
  response->op = static_cast<uint8_t>(sane ? model::Answer::kDone : model::Answer::kError);
  response->tid = head.tid;
  response->source = head.dest;
  response->dest = head.source;
  const Stop back = follow({stop.device, stop.port}, *response);
  if (back.kind == Stop::kEndpoint &&
      !devices_[back.device].socket->in_responses.writer.fits(response->bytes)) {
    return false;
  }
  if (loses()) {
    ++counts_.lost;  // of the request
    return true;
  }
  if (sane) {
    access(*devices_[stop.device].registers, stop.port, head, payload, response->payload());
  }
  ++counts_.answered;
  if (back.kind != Stop::kEndpoint) {
    count(back.kind == Stop::kSwitch ? Stop::kUnrouted : back.kind);
    return true;
  }
  return deliver(back, *response, response->payload());
}

void Fabric::access(SwitchRegisters& registers, uint32_t in_port, const Frame& head,
                    const uint8_t* payload, uint8_t* words) {
  for (uint32_t at = 0; at < head.length; at += 4) {
    const auto offset = static_cast<uint32_t>(head.address) + at;
    uint32_t word = 0;
    if (static_cast<MaintOp>(head.op) == MaintOp::kRead) {
      word = registers.read(offset, in_port);
      std::memcpy(words + at, &word, sizeof(word));
    } else {
      std::memcpy(&word, payload + at, sizeof(word));
      registers.write(offset, word);
    }
  }
}

int Fabric::create(Topology topology, std::unique_ptr<model::Clock> clock,
                   std::shared_ptr<Fabric>* out) {
  std::shared_ptr<Fabric> made(new Fabric(std::move(topology), std::move(clock)));
  if (const int rc = made->build(); rc != 0) {
    return rc;
  }
  *out = std::move(made);
  return 0;
}

}  // namespace rio::wire::switched
