#include "fpga/model/core/transactions.hpp"

#include <algorithm>

namespace rio::model {
namespace {

FrameType frame_type(const Transaction& t) {
  if (t.ring == kTxRing) {
    return FrameType::kDoorbell;
  }
  switch (t.ring) {
    case kBarrierRing:
      return FrameType::kDoorbell;
    case kDmaRing:
      return FrameType::kRequest;
    default:
      return static_cast<regs::MaintOp>(t.op) == regs::MaintOp::kPortWrite
                 ? FrameType::kPortWrite
                 : FrameType::kMaintRequest;
  }
}

/// Whether the response to the request carries data.
bool returns_data(const Transaction& t) {
  const auto op = static_cast<regs::DmaOp>(t.op);
  return t.ring == kDmaRing
             ? op == regs::DmaOp::kNread || op >= regs::DmaOp::kAtomicInc
             : t.ring == kMaintRing && static_cast<regs::MaintOp>(t.op) == regs::MaintOp::kRead;
}

}  // namespace

/// A free transaction of the flow; null: all are in flight or resting.
[[gnu::always_inline]] inline Transaction* Transactions::take(Flow& flow,
                                                              const Transaction& request) {
  if (flow.transactions == nullptr) {
    flow.transactions = std::make_unique<Transaction[]>(kTids);
  }
  if (flow.tids_busy == kTids) {
    return nullptr;
  }
  while (flow.transactions[flow.next_tid].state != Transaction::kFree) {
    ++flow.next_tid;
  }
  Transaction& transaction = flow.transactions[flow.next_tid++];
  transaction = request;
  transaction.state = Transaction::kFlying;
  transaction.since_ns = core_.now_ns;
  ++flow.tids_busy;
  return &transaction;
}

bool Transactions::start(Flow& flow, const Transaction& request) {
  Transaction* const t = take(flow, request);
  if (t == nullptr) {
    return false;
  }
  if (!core_.link_up || !transmit(flow, *t, tid_of(flow, *t))) {
    t->resend = true;
    flow.requests_wait = true;
    due_.push_back({&flow, t});
  }
  return true;
}

bool Transactions::start_now(Flow& flow, const Transaction& request) {
  Transaction* const t = core_.link_up ? take(flow, request) : nullptr;
  const bool sent = t != nullptr && transmit(flow, *t, tid_of(flow, *t));
  if (t != nullptr && !sent) {
    end(flow, *t);
  }
  return sent;
}

bool Transactions::transmit(Flow& flow, Transaction& t, uint8_t tid) {
  if (t.pulled) {
    return transmit_long(flow, t, tid);
  }
  const FrameType type = frame_type(t);
  const uint32_t payload = payload_bytes(type, t.op, t.length);
  if (flow.way->requests->reserve(frame_bytes(payload)) == nullptr) {
    return false;
  }
  Frame frame;
  frame.begin(type, flow.pair.dest_id, flow.dest_id);
  frame.length = static_cast<uint16_t>(t.length);
  frame.op = t.op;
  frame.tid = tid;
  frame.hops = t.hops;
  frame.address = t.address;
  HostPort& host = *flow.pair.function->host;
  const uint8_t* const bytes = payload > 0 ? host.large(t.bus_addr, payload, false) : nullptr;
  if (payload > 0 && bytes == nullptr) [[unlikely]] {
    send_gathered(flow, t, frame, payload);
  } else {
    flow.way->requests->send_reserved(head_of(frame), bytes, payload);
  }
  if (type == FrameType::kRequest && static_cast<regs::DmaOp>(t.op) != regs::DmaOp::kNread) {
    flow.note_write(flow.way->requests->tail());
  }
  ++core_.counts.tx_packets;
  return true;
}

/// Send a request whose payload is in several pieces of host memory.
void Transactions::send_gathered(const Flow& flow, const Transaction& t, Frame& frame,
                                 uint32_t payload) {
  uint8_t bytes[regs::kMessageBytesMax];
  if (!flow.pair.function->host->read(t.bus_addr, bytes, payload)) {
    // The memory was unmapped after the owner had checked it. Send an empty payload: the receiver
    // answers ERROR, which is a clearer report than a time-out.
    frame.length = 0;
    payload = 0;
  }
  flow.way->requests->send_reserved(head_of(frame), bytes, payload);
}

bool Transactions::transmit_long(Flow& flow, Transaction& t, uint8_t tid) {
  PullPart part = {0, t.length, 0};
  if (!returns_data(t)) {
    // The partner may read only memory that this card may read. If it was unmapped after the owner
    // had checked it, there is nothing to pull, and the receiver wants packets instead.
    const uint8_t* const bytes = flow.pair.function->host->large(t.bus_addr, t.length, false);
    part.address = reinterpret_cast<uintptr_t>(bytes);
    part.length = bytes != nullptr ? t.length : 0;
  }
  constexpr uint32_t kBytes = frame_bytes(sizeof(part));
  Frame* const frame = flow.way->requests->reserve(kBytes);
  if (frame == nullptr) {
    return false;
  }
  frame->begin(FrameType::kLongRequest, flow.pair.dest_id, flow.dest_id);
  frame->length = sizeof(part);
  frame->op = t.op;
  frame->tid = tid;
  frame->address = t.address;
  std::memcpy(frame->payload(), &part, sizeof(part));
  t.cookie = flow.way->requests->tail();
  flow.way->requests->commit(frame, kBytes);
  if (!returns_data(t)) {
    flow.note_write(flow.way->requests->tail());
  }
  if (unpublished_ != flow.way->requests) {
    publish();
    unpublished_ = flow.way->requests;
  }
  core_.counts.tx_packets += long_packets(t.length);
  return true;
}

void Transactions::revoke(const Flow& flow, const Transaction& t) {
  if (t.pulled && !t.resend) {
    flow.way->requests->revoke(t.cookie);
  }
}

void Transactions::send_due() {
  for (const Due& due : due_) {
    due.flow->requests_wait = false;
  }
  std::erase_if(due_, [this](const Due& due) {
    Transaction& t = *due.transaction;
    if (t.state != Transaction::kFlying || !t.resend) {
      return true;
    }
    // If its ring is being stopped, check_timers() ends the transaction. Where one request of a
    // flow finds no room, the later ones are not tried.
    if (due.flow->requests_wait || fate(*due.flow, t) != regs::Status::kOk ||
        t.since_ns > core_.now_ns) {
      return false;
    }
    if (!transmit(*due.flow, t, tid_of(*due.flow, t))) {
      due.flow->requests_wait = true;
      return false;
    }
    t.resend = false;
    t.since_ns = core_.now_ns;
    return true;
  });
  publish();
}

Transaction* Transactions::answered(Flow& flow, const InFrame& response) {
  if (flow.transactions == nullptr) {
    return nullptr;
  }
  Transaction& t = flow.transactions[response.tid];
  if (t.state == Transaction::kQuarantine) {
    t.since_ns = std::min(t.since_ns, core_.now_ns);
  }
  return t.state == Transaction::kFlying && !t.resend ? &t : nullptr;
}

std::optional<regs::Status> Transactions::conclude(Flow& flow, Transaction& t,
                                                   const InFrame& response) {
  const auto answer = static_cast<Answer>(response.op);
  if (answer == Answer::kRetry) {
    return again(flow, t) ? std::nullopt : std::optional(regs::Status::kRetryExpired);
  }
  if (answer != Answer::kDone ||
      (t.ring != kTxRing && response.length != (returns_data(t) ? t.length : 0))) {
    return regs::Status::kErrorResponse;
  }
  if (returns_data(t)) {
    flow.pair.function->host->write(t.bus_addr, response.payload(), response.length,
                                    flow.pair.rings[t.ring].relaxed);
  }
  return regs::Status::kOk;
}

/// Send again later. @return false: the retry limit is reached, or the ring is being stopped.
bool Transactions::again(Flow& flow, Transaction& t) {
  if (!flow.pair.rings[t.ring].running()) {
    return false;
  }
  ++core_.counts.tx_retries;
  if (t.ring == kBarrierRing) {
    return false;  // the barrier engine decides when it is sent again, and whether
  }
  ++t.retries;
  if (core_.timers.retry_limit != 0 && t.retries >= core_.timers.retry_limit) {
    return false;
  }
  t.resend = true;
  t.since_ns = core_.now_ns + core_.timers.retry_ns;
  due_.push_back({&flow, &t});
  return true;
}

void Transactions::end(Flow& flow, Transaction& t) {
  t.state = Transaction::kFree;
  --flow.tids_busy;
}

void Transactions::expire(Flow& flow, Transaction& t, regs::Status status, const Ended& ended) {
  core_.counts.tx_timeouts += status == regs::Status::kResponseTimeout ? 1 : 0;
  revoke(flow, t);
  ended(flow, t, status);
  if (t.resend || flow.way->gone) {
    end(flow, t);  // nothing of it is in flight
  } else {
    t.state = Transaction::kQuarantine;
    t.since_ns = core_.now_ns;
  }
}

regs::Status Transactions::fate(const Flow& flow, const Transaction& t) const {
  if (!t.resend) {
    return regs::Status::kResponseTimeout;
  }
  if (!core_.link_up) {
    return regs::Status::kLinkDown;
  }
  if (flow.pair.rings[t.ring].running()) {
    return regs::Status::kOk;
  }
  return t.retries > 0 ? regs::Status::kRetryExpired : regs::Status::kFlushed;
}

void Transactions::check_timers(const Ended& ended) {
  core_.each_flow([&](Flow& flow) {
    flow.each_transaction([&](Transaction& t) {
      const bool over = core_.now_ns > t.since_ns;
      const uint64_t age = over ? core_.now_ns - t.since_ns : 0;
      const regs::Status status = fate(flow, t);
      const bool waited =
          status == regs::Status::kResponseTimeout
              ? core_.late(flow, t.ring, t.since_ns)
              : age > core_.timers.response_ns || status == regs::Status::kRetryExpired;
      if (t.state == Transaction::kFlying && waited && status != regs::Status::kOk) {
        expire(flow, t, status, ended);
      } else if (t.state == Transaction::kQuarantine && age > 2 * core_.timers.response_ns) {
        end(flow, t);
      }
    });
  });
}

void Transactions::lose(Flow& flow, const Ended& ended) {
  flow.each_transaction([&](Transaction& t) {
    if (t.state == Transaction::kFlying) {
      t.pulled = false;  // the ring of frames is gone: nothing is to be revoked
      expire(flow, t, t.resend ? regs::Status::kLinkDown : regs::Status::kResponseTimeout, ended);
    } else {
      end(flow, t);
    }
  });
}

void Transactions::forget(const Pair& pair) {
  std::erase_if(due_, [&pair](const Due& due) { return &due.flow->pair == &pair; });
  const auto rest = [this](const Flow& flow, Transaction& t) {
    if (t.state == Transaction::kFlying) {
      revoke(flow, t);
      t.state = Transaction::kQuarantine;
      t.since_ns = core_.now_ns + core_.timers.response_ns;
    }
  };
  core_.each_flow(
      [&rest](Flow& flow) {
        flow.requests_wait = false;
        flow.each_transaction([&](Transaction& t) { rest(flow, t); });
      },
      &pair);
}

}  // namespace rio::model
