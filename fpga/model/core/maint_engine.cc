#include "fpga/model/core/maint_engine.hpp"

#include <algorithm>

namespace rio::model {
namespace {

using regs::MaintOp;
using regs::Status;
using Control = regs::maint_desc::Control;

bool acceptable(const regs::MaintDesc& desc) {
  return Control::op.get(desc.control) <= static_cast<uint32_t>(MaintOp::kPortWrite) &&
         desc.length >= 4 && desc.length <= regs::kMaintBytesMax && (desc.length & 3) == 0 &&
         (desc.offset & 3) == 0 && desc.offset < (1u << 24);
}

}  // namespace

void MaintEngine::run(Ring& ring) {
  uint32_t count = core_.poll_tail(ring);
  for (Operation& operation : operations_) {
    if (count == 0) {
      return;
    }
    if (operation.ring != nullptr) {
      continue;
    }
    operation.desc = ring.fetch<regs::MaintDesc>(ring.head);
    const Flow* flow = Control::local.get(operation.desc.control) != 0
                           ? nullptr
                           : core_.flow(*ring.pair, operation.desc.dest_id);
    if (flow != nullptr && flow->tids_busy == kTids) {
      return;  // wait: an ID is free again after its transaction's rest
    }
    operation.ring = &ring;
    operation.index = ring.head;
    ++ring.head;
    ++ring.outstanding;
    --count;
    if (const auto status = start(operation); status.has_value()) {
      finish(operation, *status, operation.desc.length, 0);
    }
  }
}

std::optional<Status> MaintEngine::start(const Operation& operation) {
  const regs::MaintDesc& desc = operation.desc;
  if (!acceptable(desc)) {
    return Status::kBadDescriptor;
  }
  if (Control::local.get(desc.control) != 0) {
    return local(desc);
  }
  Flow* flow = core_.flow(*operation.ring->pair, desc.dest_id);
  if (!core_.link_up || flow == nullptr) {
    return Status::kLinkDown;
  }
  const auto op = static_cast<MaintOp>(Control::op.get(desc.control));
  if (op != MaintOp::kRead && !core_.host.mapped(desc.bus_addr, desc.length)) {
    return Status::kHostReadFailed;
  }
  Transaction request;
  request.ring = kMaintRing;
  request.op = static_cast<uint8_t>(op);
  request.hops = static_cast<uint8_t>(Control::hop_count.get(desc.control));
  request.length = desc.length;
  request.address = desc.offset;
  request.bus_addr = desc.bus_addr;
  request.owner = static_cast<uint32_t>(&operation - operations_.data());
  if (op == MaintOp::kPortWrite) {
    // A port-write may be dropped. RIO Part 1 §4.1.10
    static_cast<void>(transactions_.send_posted(*flow, request));
    return Status::kOk;
  }
  return transactions_.start(*flow, request) ? std::nullopt : std::optional(Status::kRetryExpired);
}

Status MaintEngine::local(const regs::MaintDesc& desc) {
  uint32_t words[regs::kMaintBytesMax / 4] = {};
  const uint32_t count = desc.length / 4;
  switch (static_cast<MaintOp>(Control::op.get(desc.control))) {
    case MaintOp::kRead:
      for (uint32_t i = 0; i < count; ++i) {
        words[i] = csr_.read(desc.offset + 4 * i);
      }
      core_.host.write(desc.bus_addr, words, desc.length);
      return Status::kOk;
    case MaintOp::kWrite:
      if (!core_.host.read(desc.bus_addr, words, desc.length)) {
        return Status::kHostReadFailed;
      }
      for (uint32_t i = 0; i < count; ++i) {
        csr_.write(desc.offset + 4 * i, words[i]);
      }
      return Status::kOk;
    default:
      return Status::kBadDescriptor;
  }
}

void MaintEngine::finish(Operation& operation, Status status, uint32_t bytes, uint32_t retries) {
  Ring& ring = *operation.ring;
  core_.complete_entry(ring, operation.desc.cookie, operation.index,
                       status == Status::kOk ? bytes : 0, status, retries);
  --ring.outstanding;
  operation.ring = nullptr;
}

bool MaintEngine::on_request(const InFrame& frame) {
  const auto op = static_cast<MaintOp>(frame.op);
  const bool sane = frame.length >= 4 && frame.length <= regs::kMaintBytesMax &&
                    (frame.length & 3) == 0 && (frame.address & 3) == 0 &&
                    (op == MaintOp::kRead || op == MaintOp::kWrite);
  const uint32_t bytes = sane && op == MaintOp::kRead ? frame.length : 0;
  Frame* response = responder_.begin(frame, FrameType::kMaintResponse, bytes);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  response->op = static_cast<uint8_t>(sane ? Answer::kDone : Answer::kError);
  for (uint32_t at = 0; sane && at < frame.length; at += 4) {
    const auto offset = static_cast<uint32_t>(frame.address) + at;
    uint32_t word = 0;
    if (op == MaintOp::kRead) {
      word = csr_.read(offset);
      std::memcpy(response->payload() + at, &word, 4);
    } else {
      std::memcpy(&word, frame.payload() + at, 4);
      csr_.write(offset, word);
    }
  }
  responder_.send(response);
  return true;
}

void MaintEngine::on_port_write(const InFrame& frame) {
  uint32_t data[4] = {};
  std::memcpy(data, frame.payload(), std::min<uint32_t>(frame.length, sizeof(data)));
  ++core_.counts.rx_packets;
  core_.event(core_.pairs[0], regs::EventType::kPortWrite, frame.source, 0, data);
}

void MaintEngine::on_end(const Transaction& transaction, Status status) {
  finish(operations_[transaction.owner], status, transaction.length, transaction.retries);
}

}  // namespace rio::model
