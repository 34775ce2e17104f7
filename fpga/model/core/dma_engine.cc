#include "fpga/model/core/dma_engine.hpp"

#include <algorithm>

namespace rio::model {
namespace {

using regs::DmaOp;
using regs::Status;
using Control = regs::dma_desc::Control;

DmaOp op_of(const regs::DmaDesc& desc) {
  return static_cast<DmaOp>(Control::op.get(desc.control));
}
bool is_atomic(DmaOp op) {
  return op >= DmaOp::kAtomicInc;
}

/// Bytes of the largest packet that the specification allows at this address. RIO Part 1 §4.1.2
uint32_t legal_bytes(DmaOp op, uint64_t addr, uint32_t left) {
  const auto in_doubleword = static_cast<uint32_t>(8 - (addr & 7));
  if ((addr & 7) != 0 || left < 8) {
    return std::min(left, in_doubleword);
  }
  const uint32_t whole = std::min(left & ~7u, regs::kSegmentBytesMax);
  if (op != DmaOp::kNread || whole >= 32) {
    return op == DmaOp::kNread ? whole & ~31u : whole;
  }
  return whole >= 16 ? 16 : 8;
}

}  // namespace

bool DmaEngine::acceptable(const regs::DmaDesc& desc) const {
  const DmaOp op = op_of(desc);
  if (op > DmaOp::kAtomicCswap || Control::prio.get(desc.control) > 2 || desc.length == 0 ||
      desc.length > kDmaBytesMax) {
    return false;
  }
  if (is_atomic(op)) {
    return (desc.length == 1 || desc.length == 2 || desc.length == 4) &&
           (desc.rio_addr & (desc.length - 1)) == 0;
  }
  return op != DmaOp::kSwrite || ((desc.rio_addr | desc.length) & 7) == 0;
}

void DmaEngine::run(Ring& ring) {
  uint32_t count = core_.poll_tail(ring);
  for (Operation& operation : operations_) {
    if (count == 0 || ring.outstanding == share_) {
      break;
    }
    if (operation.ring != nullptr) {
      continue;
    }
    operation = {.ring = &ring, .desc = ring.fetch<regs::DmaDesc>(ring.head), .index = ring.head};
    ++ring.head;
    --count;
    ++busy_;
    ++ring.outstanding;
    operation.flow = core_.flow(*ring.pair, operation.desc.dest_id);
    if (!acceptable(operation.desc)) {
      operation.status = Status::kBadDescriptor;
    } else if (!core_.link_up || operation.flow == nullptr) {
      operation.status = Status::kLinkDown;
    } else if (core_.faults.draw(Fault::kBadAddress)) {
      operation.status = Status::kHostReadFailed;
    }
    finish_if_over(operation);
  }
}

uint32_t DmaEngine::packet_bytes(const Operation& operation) const {
  const DmaOp op = op_of(operation.desc);
  const uint32_t left = operation.desc.length - operation.issued;
  if (is_atomic(op)) {
    return left;
  }
  if (!core_.exact) {
    return std::min(left, regs::kMessageBytesMax);
  }
  return legal_bytes(op, operation.desc.rio_addr + operation.issued, left);
}

void DmaEngine::issue(Operation& operation) {
  const DmaOp op = op_of(operation.desc);
  while (operation.issued < operation.desc.length && operation.status == Status::kOk) {
    Transaction request;
    request.ring = kDmaRing;
    request.op = static_cast<uint8_t>(op);
    request.length = static_cast<uint16_t>(packet_bytes(operation));
    request.address = operation.desc.rio_addr + operation.issued;
    request.bus_addr = operation.desc.bus_addr + operation.issued;
    request.owner = static_cast<uint32_t>(&operation - operations_.data());
    const uint32_t host_bytes = request.length * (op == DmaOp::kAtomicCswap ? 2u : 1u);
    if (op != DmaOp::kNread &&
        !operation.ring->pair->function->host->mapped(request.bus_addr, host_bytes)) {
      operation.status = Status::kHostReadFailed;
      return;
    }
    const bool answered = has_response(op);
    if (!(answered ? transactions_.start(*operation.flow, request)
                   : transactions_.send_posted(*operation.flow, request))) {
      return;
    }
    operation.flying += answered ? 1 : 0;
    operation.done += answered ? 0 : request.length;
    operation.issued += request.length;
  }
}

void DmaEngine::progress() {
  for (Operation& operation : operations_) {
    if (operation.ring == nullptr || operation.issued == operation.desc.length) {
      continue;
    }
    if (core_.link_up) {
      issue(operation);
    } else if (operation.status == Status::kOk) {
      // The rest is not sent. Packets that were sent may have been carried out.
      operation.status = operation.issued == 0 ? Status::kLinkDown : Status::kResponseTimeout;
    }
    finish_if_over(operation);
  }
}

DmaEngine::Load DmaEngine::load() const {
  Load load;
  for (const Operation& operation : operations_) {
    if (operation.ring == nullptr || is_atomic(op_of(operation.desc))) {
      continue;
    }
    if (op_of(operation.desc) == DmaOp::kNread) {
      load.read_bytes += operation.desc.length - operation.done;
    } else {
      load.write_bytes += operation.desc.length;
      load.sends = load.sends || operation.issued < operation.desc.length;
    }
  }
  return load;
}

void DmaEngine::on_end(const Transaction& transaction, Status status) {
  Operation& operation = operations_[transaction.owner];
  // A refusal while the ring is being stopped counts, too.
  const bool stopped =
      status == Status::kRetryExpired && !transaction.resend && !operation.ring->running();
  operation.retries += transaction.retries + (stopped ? 1 : 0);
  // "In doubt" overrides other errors; otherwise the first error counts.
  if (status == Status::kOk) {
    operation.done += transaction.length;
  } else if (operation.status == Status::kOk || status == Status::kResponseTimeout) {
    operation.status = status;
  }
  --operation.flying;
  finish_if_over(operation);
}

void DmaEngine::finish_if_over(Operation& operation) {
  const bool all = operation.issued == operation.desc.length;
  if (operation.flying > 0 || (operation.status == Status::kOk && !all)) {
    return;
  }
  Ring& ring = *operation.ring;
  core_.complete_entry(ring, operation.desc.cookie, operation.index, operation.done,
                       operation.status, operation.retries);
  --ring.outstanding;
  operation.ring = nullptr;
  --busy_;
}

void DmaEngine::begin_stop(Ring& ring) {
  for (Operation& operation : operations_) {
    if (operation.ring == &ring && operation.issued < operation.desc.length &&
        operation.status == Status::kOk) {
      operation.status = Status::kFlushed;
      finish_if_over(operation);
    }
  }
  core_.flush_entries<regs::DmaDesc>(ring);
}

void DmaEngine::forget(const Pair& pair) {
  for (Operation& operation : operations_) {
    if (operation.ring != nullptr && operation.ring->pair == &pair) {
      operation = {};
      --busy_;
    }
  }
}

}  // namespace rio::model
