#include "fpga/model/core/dma_engine.hpp"

#include <algorithm>
#include <bit>

namespace rio::model {
namespace {

using regs::DmaOp;
using regs::Status;
using Control = regs::dma_desc::Control;

/// Fewest bytes of a kLongRequest while other operations are under way: one system call pulls those
/// of many. A target finds more writes in one step than a reader finds answers.
constexpr uint32_t kSeveralWriteBytes = 4 * 1024;
constexpr uint32_t kSeveralReadBytes = 8 * 1024;
/// Fewest bytes that are read together with others without asking.
constexpr uint32_t kSeveralLeasedBytes = 2 * 1024;

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
  for (uint64_t free = ~used_; free != 0 && count != 0 && ring.outstanding != share_;
       free &= free - 1) {
    Operation& operation = operations_[static_cast<size_t>(std::countr_zero(free))];
    operation = {.ring = &ring, .desc = ring.fetch<regs::DmaDesc>(ring.head), .index = ring.head};
    ++ring.head;
    --count;
    timed_.operation = nullptr;  // it is not alone any more
    used_ |= bit_of(operation);
    unsent_ |= bit_of(operation);
    writes_ |= op_of(operation.desc) != DmaOp::kNread ? bit_of(operation) : 0;
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

/// Decide what an operation of which nothing was sent sends in one kLongRequest. @return the fewest
/// bytes of one.
uint32_t DmaEngine::long_min(Operation& operation) {
  const bool reads = op_of(operation.desc) == DmaOp::kNread;
  const uint32_t bytes = operation.desc.length;
  if (!std::has_single_bit(used_)) {
    if (reads && bytes < kSeveralLeasedBytes) {
      return kSeveralReadBytes;
    }
    const bool is_leased = leased_part(operation, std::min(bytes, kLongBytesMax)).va != 0;
    return !reads ? kSeveralWriteBytes : is_leased ? kSeveralLeasedBytes : kSeveralReadBytes;
  }
  if (!WayChoice::decides(reads, bytes)) {
    return WayChoice::kWriteBytesMin;
  }
  const WayChoice::Turn turn = choice_.next(reads, bytes, core_.now_ns);
  operation.ends_timed = turn.is_timed || turn.is_before_timed;
  if (turn.is_timed) {
    const uint64_t before_ns = core_.clock->now_ns() - WayChoice::kBeforeNs;
    timed_ = {&operation, turn.is_long, std::max(before_ns, last_end_ns_)};
  }
  return turn.is_long ? 1 : WayChoice::kBytesMax + 1;
}

/// Bytes of the next kLongRequest. @return 0: send a packet. One at a time of each operation, so
/// that the rest can follow in packets where the partner wants these.
uint32_t DmaEngine::long_bytes(Operation& operation) {
  const DmaOp op = op_of(operation.desc);
  const bool reads = op == DmaOp::kNread;
  const uint32_t left = operation.desc.length - operation.issued;
  const Flow& flow = *operation.flow;
  if (left < (reads ? WayChoice::kReadBytesMin : kSeveralWriteBytes) || core_.exact ||
      operation.in_packets || !(reads || op == DmaOp::kNwriteR) || !flow.way->takes_long ||
      flow.way->pulls == nullptr ||
      (reads ? flow.reads_in_packets : flow.way->pulls->load(std::memory_order_relaxed) == 0)) {
    return 0;
  }
  if (operation.long_min == 0) {
    operation.long_min = long_min(operation);
  }
  if (left < operation.long_min) {
    return 0;
  }
  HostPort& host = *operation.ring->pair->function->host;
  const uint64_t at = operation.desc.bus_addr + operation.issued;
  const uint32_t bytes = std::min(left, kLongBytesMax);
  if (host.large(at, bytes, reads) != nullptr) {
    return bytes;
  }
  if (timed_.operation == &operation) {
    timed_.operation = nullptr;  // it goes in packets, which is not what is timed
  }
  return 0;
}

/// The request for an operation's next bytes. @param long_bytes not 0: as a kLongRequest.
Transaction DmaEngine::next_request(const Operation& operation, uint32_t long_bytes) {
  Transaction request;
  request.ring = kDmaRing;
  request.op = static_cast<uint8_t>(op_of(operation.desc));
  request.pulled = long_bytes != 0;
  request.length = request.pulled ? long_bytes : packet_bytes(operation);
  request.address = operation.desc.rio_addr + operation.issued;
  request.bus_addr = operation.desc.bus_addr + operation.issued;
  request.owner = static_cast<uint32_t>(&operation - operations_.data());
  return request;
}

/// Whether a write or atomic of a flow has not ended.
bool DmaEngine::writes_to(const Flow& flow) const {
  for (uint64_t left = writes_; left != 0; left &= left - 1) {
    if (operations_[static_cast<size_t>(std::countr_zero(left))].flow == &flow) {
      return true;
    }
  }
  return false;
}

/// The next bytes of an operation, if it may read them without asking. @return with `va` 0: it may
/// not, or would pass a write.
DmaEngine::Leased DmaEngine::leased_part(const Operation& operation, uint32_t bytes) {
  Flow& flow = *operation.flow;
  if (flow.leases == nullptr || flow.way->puller == nullptr ||
      op_of(operation.desc) != DmaOp::kNread || !flow.writes_are_over() || writes_to(flow)) {
    return {};
  }
  const uint64_t lease = flow.way->puller->lease_number();
  const Transaction read = next_request(operation, bytes);
  return {&flow, read, flow.leases->find(read.address, bytes, lease), lease};
}

void DmaEngine::add_leased(Operation& operation, const Leased& part) {
  leased_.push_back(part);
  leased_bytes_ += part.read.length;
  core_.counts.tx_packets += long_packets(part.read.length);
  operation.long_flies = true;
  ++operation.flying;
  operation.issued += part.read.length;
  next_ = (part.read.owner + 1) % kOperations;
}

void DmaEngine::issue(Operation& operation, bool may_read) {
  const DmaOp op = op_of(operation.desc);
  Flow& flow = *operation.flow;
  while (operation.issued < operation.desc.length && operation.status == Status::kOk) {
    const bool answered = has_response(op);
    // If requests of the flow wait inside the card, this one waits here, where that costs least.
    if (&flow == full_ || (answered && (flow.tids_busy == kTids || flow.requests_wait))) {
      return;
    }
    const uint32_t long_bytes = this->long_bytes(operation);
    if (operation.long_flies || (long_bytes != 0 && operation.flying != 0)) {
      return;
    }
    if (long_bytes != 0) {
      const Leased part = leased_part(operation, long_bytes);
      if (part.va != 0 && (!may_read || leased_bytes_ >= kLeasedBytesMax)) {
        return;
      }
      if (part.va != 0) {
        add_leased(operation, part);
        break;
      }
    }
    const Transaction request = next_request(operation, long_bytes);
    const uint32_t host_bytes = request.length * (op == DmaOp::kAtomicCswap ? 2u : 1u);
    if (op != DmaOp::kNread && !request.pulled &&
        !operation.ring->pair->function->host->mapped(request.bus_addr, host_bytes)) {
      operation.status = Status::kHostReadFailed;
      return;
    }
    if (!(answered ? transactions_.start(flow, request)
                   : transactions_.send_posted(flow, request))) {
      full_ = &flow;
      return;
    }
    operation.long_flies = request.pulled;
    operation.flying += answered ? 1 : 0;
    operation.done += answered ? 0 : request.length;
    operation.issued += request.length;
  }
  if (operation.issued == operation.desc.length) {
    unsent_ &= ~bit_of(operation);
  }
}

/// In turn, since a step reads a bounded number of bytes.
void DmaEngine::progress(bool may_read) {
  full_ = nullptr;
  leased_.clear();
  leased_bytes_ = 0;
  const uint64_t from_next = ~uint64_t{0} << next_;
  progress(unsent_ & from_next, may_read);
  progress(unsent_ & ~from_next, may_read);
  transactions_.publish();
}

void DmaEngine::progress(uint64_t unsent, bool may_read) {
  for (; unsent != 0; unsent &= unsent - 1) {
    Operation& operation = operations_[static_cast<size_t>(std::countr_zero(unsent))];
    if (core_.link_up) {
      issue(operation, may_read);
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
  operation.long_flies = false;  // if one was, it was this one
  finish_if_over(operation);
}

void DmaEngine::send_in_packets(const Transaction& transaction) {
  operations_[transaction.owner].in_packets = true;
  ask(transaction);
}

void DmaEngine::ask(const Transaction& transaction) {
  Operation& operation = operations_[transaction.owner];
  timed_.operation = nullptr;
  operation.long_flies = false;
  operation.issued -= transaction.length;
  --operation.flying;
  unsent_ |= bit_of(operation);
  if (operation.status == Status::kOk && !operation.ring->running()) {
    operation.status = Status::kFlushed;  // as begin_stop()
  }
  finish_if_over(operation);
}

void DmaEngine::finish_if_over(Operation& operation) {
  const bool all = operation.issued == operation.desc.length;
  if (operation.flying > 0 || (operation.status == Status::kOk && !all)) {
    return;
  }
  if (operation.ends_timed) {
    end_timed(operation);
  }
  Ring& ring = *operation.ring;
  core_.complete_entry(ring, operation.desc.cookie, operation.index, operation.done,
                       operation.status, operation.retries);
  --ring.outstanding;
  operation.ring = nullptr;
  free(operation);
}

/// An operation has ended that is timed, or that is the last of its kind before one.
void DmaEngine::end_timed(const Operation& operation) {
  last_end_ns_ = core_.clock->now_ns();
  if (timed_.operation != &operation) {
    return;  // it was not timed, or not alone
  }
  timed_.operation = nullptr;
  if (operation.status == Status::kOk) {
    choice_.took(op_of(operation.desc) == DmaOp::kNread, operation.desc.length, timed_.is_long,
                 last_end_ns_ - timed_.since_ns);
  }
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
      timed_.operation = nullptr;
      free(operation);
    }
  }
}

}  // namespace rio::model
