// Moves frames across a fabric, from ring to ring in one go.
#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"
#include "fpga/wire/frame_check.hpp"
#include "fpga/wire/switched/fabric.hpp"

namespace rio::wire::switched {
namespace {

using model::Frame;
using model::FrameType;
using regs::MaintOp;

constexpr uint32_t kFramesPerTurn = 64;  // of one ring, so that one card cannot occupy the thread

/// Whether switches count hops of such a frame and may stop it, instead of only passing it on.
bool counts_hops(FrameType type) {
  return type == FrameType::kMaintRequest || type == FrameType::kPortWrite;
}

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
  Frame* room = ring.writer.reserve(head.bytes);
  if (room == nullptr) {
    return false;
  }
  if (loses()) {
    ++counts_.lost;
    return true;
  }
  constexpr size_t kLength = sizeof(head.bytes);  // that field belongs to the ring
  std::memcpy(reinterpret_cast<uint8_t*>(room) + kLength,
              reinterpret_cast<const uint8_t*>(&head) + kLength, sizeof(head) - kLength);
  room->hops = static_cast<uint8_t>(stop.hops);
  std::memcpy(room->payload(), payload, head.bytes - sizeof(head));
  ring.writer.commit(room, head.bytes);
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
}  // namespace rio::wire::switched
