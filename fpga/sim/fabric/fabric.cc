#include "fpga/sim/fabric/fabric.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <random>

#include "fpga/regs/gen/rio_regs.hpp"
#include "fpga/sim/fabric/device.hpp"
#include "fpga/sim/fabric/frame_check.hpp"

namespace rio::sim {
namespace {

using model::Frame;
using model::FrameType;
using regs::MaintOp;

constexpr uint32_t kFramesPerTurn = 64;  // of one ring, so that one card cannot keep the thread
constexpr uint32_t kTurns = 2;           // a request, and what answers it
constexpr uint32_t kPluggedRingBytes = 64 * 1024;
constexpr uint32_t kOwnRingBytes = 16 * 1024;
constexpr uint32_t kMaxHops = 0xFF;
constexpr uint32_t kAnotherHost = 0xFFFFFFFF;  // who has left locks and tags behind

/// Where a frame ends up.
struct Stop {
  enum Kind : uint8_t { kEndpoint, kSwitch, kUnrouted, kLooped, kAbsent };
  Kind kind;
  size_t device = 0;
  uint32_t port = 0;  ///< by which it came
  uint32_t hops = 0;  ///< left
};

/// Whether switches count hops and stop a frame, rather than only pass it on.
bool counts_hops(FrameType type) {
  return type == FrameType::kMaintRequest || type == FrameType::kPortWrite;
}

Frame header_of(const Frame& frame) {
  Frame head;
  std::memcpy(&head, &frame, sizeof(head));
  return head;
}

class FabricImpl final : public Fabric, public std::enable_shared_from_this<FabricImpl> {
 public:
  FabricImpl(Topology topology, std::unique_ptr<model::Clock> clock);

  [[nodiscard]] int build();
  int plug(const std::string& endpoint, std::unique_ptr<model::Wire>* out) override;
  int set_device(const std::string& name, bool present) override;
  int set_silent(const std::string& name, bool silent) override;
  FabricCounts counts() override;

  /// Move frames; returns at once when another thread is at it.
  void pump();
  void unplug(Device& device);

 private:
  [[nodiscard]] Device* find(const std::string& name);
  [[nodiscard]] int own_card(Device& device);
  void preset(Device& device, uint32_t offset, uint32_t value);
  void show_link(Device& device, bool tell);
  void tell_port(Device& device, uint32_t port);

  void turn(Device& device);
  void work_own_cards();
  void drain(Device& from, model::FrameReader& reader, bool response);
  [[nodiscard]] bool carry(Device& from, const Frame& frame, const Frame& head);
  [[nodiscard]] bool deliver(const Stop& stop, const Frame& frame, const Frame& head);
  [[nodiscard]] bool answer(const Stop& stop, const Frame& frame, const Frame& head);
  void access(SwitchRegisters& registers, uint32_t in_port, const Frame& frame, const Frame& head,
              uint8_t* words);
  [[nodiscard]] Stop follow(PortName from, const Frame& head) const;
  void count(Stop::Kind kind);
  [[nodiscard]] bool loses() { return topology_.loss_rate > 0 && lost_(random_); }

  std::mutex mutex_;
  Topology topology_;
  std::unique_ptr<model::Clock> clock_;
  std::vector<Device> devices_;
  uint32_t switches_ = 0;
  std::vector<Device*> plugged_;
  std::vector<Device*> busy_;
  std::mt19937_64 random_;
  std::bernoulli_distribution lost_;
  FabricCounts counts_;
};

/// A card's end.
class FabricWire final : public model::Wire {
 public:
  /// @param keep null for the fabric's own cards, which the fabric steps and which it outlives.
  FabricWire(std::shared_ptr<FabricImpl> keep, Device& device)
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
  std::shared_ptr<FabricImpl> keep_;
  Device& device_;
  model::Outbound out_;
  model::Inbound in_;
};

FabricImpl::FabricImpl(Topology topology, std::unique_ptr<model::Clock> clock)
    : topology_(std::move(topology)),
      clock_(std::move(clock)),
      devices_(topology_.devices.size()),
      random_(topology_.loss_seed),
      lost_(topology_.loss_rate) {
  if (clock_ == nullptr) {
    clock_ = std::make_unique<model::HostClock>();
  }
}

int FabricImpl::build() {
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

Device* FabricImpl::find(const std::string& name) {
  for (Device& device : devices_) {
    if (device.spec.name == name) {
      return &device;
    }
  }
  return nullptr;
}

int FabricImpl::own_card(Device& device) {
  device.card.reset();  // before its rings
  device.socket = std::make_unique<Socket>(kOwnRingBytes, kOwnRingBytes);
  device.card = EndpointCard::create(std::make_unique<FabricWire>(nullptr, device), clock_.get());
  if (device.card == nullptr) {
    return -ENOMEM;
  }
  const DeviceSpec& spec = device.spec;
  if (spec.locked_by != kNobodyLocks) {
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

// As a host would that had been here before. The card's answer goes nowhere.
void FabricImpl::preset(Device& device, uint32_t offset, uint32_t value) {
  const bool up = device.link_up.exchange(true);
  model::FrameWriter& writer = device.socket->in_requests.writer;
  Frame* frame = writer.reserve(model::frame_bytes(sizeof(value)));
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
  while (const Frame* response = reader.peek()) {
    reader.pop(response);
  }
  reader.release();
  device.link_up = up;
}

// The state of all links of a device, at both ends.
void FabricImpl::show_link(Device& device, bool tell) {
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

// A port-write that finds no way or no room is lost. RIO Part 1 §4.1.10
void FabricImpl::tell_port(Device& device, uint32_t port) {
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
    static_cast<void>(deliver(stop, *frame, *frame));
  } else {
    count(stop.kind);
  }
}

int FabricImpl::plug(const std::string& endpoint, std::unique_ptr<model::Wire>* out) {
  const std::lock_guard lock(mutex_);
  Device* device = find(endpoint);
  if (device == nullptr || device->spec.is_switch) {
    return -ENOENT;
  }
  if (device->plugged) {
    return -EBUSY;
  }
  device->card.reset();
  device->socket = std::make_unique<Socket>(kPluggedRingBytes, kPluggedRingBytes);
  device->plugged = true;
  std::erase(busy_, device);
  device->busy = false;
  plugged_.push_back(device);
  *out = std::make_unique<FabricWire>(shared_from_this(), *device);
  return 0;
}

void FabricImpl::unplug(Device& device) {
  const std::lock_guard lock(mutex_);
  device.plugged = false;
  std::erase(plugged_, &device);
  if (own_card(device) != 0) {
    device.spec.silent = true;
  }
}

int FabricImpl::set_device(const std::string& name, bool present) {
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
    device->spec.locked_by = kNobodyLocks;
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

int FabricImpl::set_silent(const std::string& name, bool silent) {
  const std::lock_guard lock(mutex_);
  Device* device = find(name);
  if (device == nullptr) {
    return -ENOENT;
  }
  device->spec.silent = silent;
  return 0;
}

FabricCounts FabricImpl::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void FabricImpl::pump() {
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

void FabricImpl::turn(Device& device) {
  drain(device, device.socket->out_responses.reader, true);
  drain(device, device.socket->out_requests.reader, false);
}

void FabricImpl::work_own_cards() {
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

void FabricImpl::drain(Device& from, model::FrameReader& reader, bool response) {
  uint32_t left = kFramesPerTurn;
  while (const Frame* frame = left-- > 0 ? reader.peek() : nullptr) {
    const Frame head = header_of(*frame);
    if (head.bytes == 0 || head.bytes > reader.to_end()) {
      break;  // it changed since peek() looked: such a ring is not read any more
    }
    if (!may_travel(head, response)) {
      ++counts_.malformed;
    } else if (!carry(from, *frame, head)) {
      break;  // no room where it goes
    }
    reader.pop_bytes(head.bytes);
  }
  reader.release();
}

// false: the frame has to wait. Others may still write to it: what counts is `head`.
bool FabricImpl::carry(Device& from, const Frame& frame, const Frame& head) {
  const Stop stop = follow({static_cast<size_t>(&from - devices_.data()), 0}, head);
  switch (stop.kind) {
    case Stop::kEndpoint:
      return deliver(stop, frame, head);
    case Stop::kSwitch:
      if (head.type == FrameType::kMaintRequest) {
        return answer(stop, frame, head);
      }
      ++counts_.unrouted;  // no switch takes port-writes
      return true;
    default:
      count(stop.kind);
      return true;
  }
}

Stop FabricImpl::follow(PortName from, const Frame& head) const {
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
    if (counts_hops(head.type)) {
      if (hops == 0) {
        return {Stop::kSwitch, next->device, next->port, 0};
      }
      --hops;
    } else if (passed >= switches_) {
      return {Stop::kLooped};  // one of them was passed twice
    }
    const uint32_t port = device.registers->route(head.dest);
    if (port >= device.spec.ports) {
      return {Stop::kUnrouted};
    }
    from = {next->device, port};
  }
}

void FabricImpl::count(Stop::Kind kind) {
  ++(kind == Stop::kUnrouted ? counts_.unrouted
     : kind == Stop::kLooped ? counts_.looped
                             : counts_.absent);
}

bool FabricImpl::deliver(const Stop& stop, const Frame& frame, const Frame& head) {
  Device& to = devices_[stop.device];
  const bool response = head.type == FrameType::kAcks || head.type == FrameType::kResponse ||
                        head.type == FrameType::kMaintResponse;
  model::RingBox& ring = response ? to.socket->in_responses : to.socket->in_requests;
  Frame* room = ring.writer.reserve(head.bytes);
  if (room == nullptr) {
    return false;
  }
  if (loses()) {
    ++counts_.lost;
    return true;
  }
  constexpr size_t kLength = sizeof(head.bytes);  // the ring writes it
  std::memcpy(reinterpret_cast<uint8_t*>(room) + kLength,
              reinterpret_cast<const uint8_t*>(&head) + kLength, sizeof(head) - kLength);
  room->hops = static_cast<uint8_t>(stop.hops);
  std::memcpy(room->payload(), frame.payload(), head.bytes - sizeof(head));
  ring.writer.commit(room, head.bytes);
  ring.writer.publish();
  ++counts_.delivered;
  if (!to.plugged && !to.busy) {
    to.busy = true;
    busy_.push_back(&to);
  }
  return true;
}

// A switch answers by the port that the request came in by; from there the answer goes by the
// requester's destID. RIO Part 3 §2.4
bool FabricImpl::answer(const Stop& stop, const Frame& frame, const Frame& head) {
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
    ++counts_.lost;  // the request
    return true;
  }
  if (sane) {
    access(*devices_[stop.device].registers, stop.port, frame, head, response->payload());
  }
  ++counts_.answered;
  if (back.kind != Stop::kEndpoint) {
    count(back.kind == Stop::kSwitch ? Stop::kUnrouted : back.kind);
    return true;
  }
  return deliver(back, *response, *response);
}

void FabricImpl::access(SwitchRegisters& registers, uint32_t in_port, const Frame& frame,
                        const Frame& head, uint8_t* words) {
  for (uint32_t at = 0; at < head.length; at += 4) {
    const auto offset = static_cast<uint32_t>(head.address) + at;
    uint32_t word = 0;
    if (static_cast<MaintOp>(head.op) == MaintOp::kRead) {
      word = registers.read(offset, in_port);
      std::memcpy(words + at, &word, sizeof(word));
    } else {
      std::memcpy(&word, frame.payload() + at, sizeof(word));
      registers.write(offset, word);
    }
  }
}

}  // namespace

int Fabric::create(Topology topology, std::unique_ptr<model::Clock> clock,
                   std::shared_ptr<Fabric>* out) {
  auto made = std::make_shared<FabricImpl>(std::move(topology), std::move(clock));
  if (const int rc = made->build(); rc != 0) {
    return rc;
  }
  *out = std::move(made);
  return 0;
}

}  // namespace rio::sim
