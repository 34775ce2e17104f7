#include "fpga/model/core/transactions.hpp"

#include <algorithm>

namespace rio::model {
namespace {

FrameType frame_type(const Transaction& t) {
  switch (t.ring) {
    case kTxRing:
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

Transaction* Transactions::start(Flow& flow) {
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
  transaction = Transaction{};
  transaction.state = Transaction::kFlying;
  ++flow.tids_busy;
  return &transaction;
}

void Transactions::send(Pair& pair, Flow& flow, Transaction& transaction) {
  transaction.since_ns = core_.now_ns;
  const uint8_t tid = tid_of(flow, transaction);
  if (!core_.link_up || !transmit(pair, flow, transaction, tid)) {
    transaction.resend = true;
    due_.push_back({&pair, &flow, tid});
  }
}

bool Transactions::send_posted(Pair& pair, Flow& flow, const Transaction& request) {
  return transmit(pair, flow, request, 0);
}

bool Transactions::transmit(Pair& pair, Flow& flow, const Transaction& t, uint8_t tid) {
  const FrameType type = frame_type(t);
  const uint32_t payload = payload_bytes(type, t.op, t.length);
  Frame* frame = flow.way->requests->reserve(frame_bytes(payload));
  if (frame == nullptr) {
    return false;
  }
  frame->begin(type, pair.dest_id, flow.dest_id);
  if (payload > 0 && !core_.host.read(t.bus_addr, frame->payload(), payload)) {
    // The memory was unmapped after the owner had checked it. Send an empty payload: the receiver
    // answers ERROR, which is a clearer report than a time-out.
    frame->length = 0;
  } else {
    frame->length = static_cast<uint16_t>(t.length);
  }
  frame->op = t.op;
  frame->tid = tid;
  frame->hops = t.hops;
  frame->address = t.address;
  flow.way->requests->commit(frame, frame_bytes(payload));
  flow.way->requests->publish();
  ++core_.counts.tx_packets;
  return true;
}

void Transactions::send_due() {
  size_t kept = 0;
  for (size_t i = 0; i < due_.size(); ++i) {
    const Due due = due_[i];
    Transaction& t = due.flow->transactions[due.tid];
    if (t.state != Transaction::kFlying || !t.resend) {
      continue;
    }
    if (fate(*due.pair, t) != regs::Status::kOk) {
      due_[kept++] = due;  // the ring is being stopped: check_timers() ends the transaction
      continue;
    }
    if (t.since_ns > core_.now_ns || !transmit(*due.pair, *due.flow, t, due.tid)) {
      due_[kept++] = due;
      continue;
    }
    t.resend = false;
    t.since_ns = core_.now_ns;
  }
  due_.resize(kept);
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

std::optional<regs::Status> Transactions::conclude(Pair& pair, Flow& flow, Transaction& t,
                                                   const InFrame& response) {
  const auto answer = static_cast<Answer>(response.op);
  if (answer == Answer::kRetry) {
    return again(pair, flow, t) ? std::nullopt : std::optional(regs::Status::kRetryExpired);
  }
  if (answer != Answer::kDone ||
      (t.ring != kTxRing && response.length != (returns_data(t) ? t.length : 0))) {
    return regs::Status::kErrorResponse;
  }
  if (returns_data(t)) {
    core_.host.write(t.bus_addr, response.payload(), response.length);
  }
  return regs::Status::kOk;
}

/// Send again later. @return false: the retry limit is reached, or the ring is being stopped.
bool Transactions::again(Pair& pair, Flow& flow, Transaction& t) {
  if (!pair.rings[t.ring].running()) {
    return false;
  }
  ++core_.counts.tx_retries;
  ++t.retries;
  if (core_.timers.retry_limit != 0 && t.retries >= core_.timers.retry_limit) {
    return false;
  }
  t.resend = true;
  t.since_ns = core_.now_ns + core_.timers.retry_ns;
  due_.push_back({&pair, &flow, tid_of(flow, t)});
  return true;
}

void Transactions::end(Flow& flow, Transaction& t) {
  t.state = Transaction::kFree;
  --flow.tids_busy;
}

void Transactions::rest(Transaction& t) {
  t.state = Transaction::kQuarantine;
  t.since_ns = core_.now_ns;
}

void Transactions::expire(Flow& flow, Transaction& t) {
  if (t.resend || flow.way->gone) {
    end(flow, t);  // nothing of it is in flight
  } else {
    rest(t);
  }
}

regs::Status Transactions::fate(const Pair& pair, const Transaction& t) const {
  if (!t.resend) {
    return regs::Status::kResponseTimeout;
  }
  if (!core_.link_up) {
    return regs::Status::kLinkDown;
  }
  if (pair.rings[t.ring].running()) {
    return regs::Status::kOk;
  }
  return t.retries > 0 ? regs::Status::kRetryExpired : regs::Status::kFlushed;
}

const std::vector<Transactions::Expired>& Transactions::check_timers() {
  expired_.clear();
  each([this](Pair& pair, Flow& flow, Transaction& t) {
    const bool over = core_.now_ns > t.since_ns;
    const uint64_t age = over ? core_.now_ns - t.since_ns : 0;
    const regs::Status status = fate(pair, t);
    const bool waited =
        status == regs::Status::kResponseTimeout
            ? core_.late(pair, t.ring, flow, t.since_ns)
            : age > core_.timers.response_ns || status == regs::Status::kRetryExpired;
    if (t.state == Transaction::kFlying && waited && status != regs::Status::kOk) {
      expired_.push_back({&pair, &flow, &t, status});
    } else if (t.state == Transaction::kQuarantine && age > 2 * core_.timers.response_ns) {
      end(flow, t);
    }
  });
  return expired_;
}

const std::vector<Transactions::Expired>& Transactions::lose(Pair& pair, Flow& flow) {
  expired_.clear();
  flow.each_transaction([&](Transaction& t) {
    if (t.state == Transaction::kFlying) {
      expired_.push_back(
          {&pair, &flow, &t, t.resend ? regs::Status::kLinkDown : regs::Status::kResponseTimeout});
    } else {
      end(flow, t);
    }
  });
  return expired_;
}

void Transactions::sent_late(uint64_t time_ns) {
  each([&](Pair&, Flow&, Transaction& t) {
    if (t.state == Transaction::kFlying && t.since_ns == time_ns) {
      t.since_ns = core_.now_ns - 1;  // differs from the stamp of frames sent from now on
    }
  });
}

void Transactions::forget(Pair& pair) {
  std::erase_if(due_, [&](const Due& due) { return due.pair == &pair; });
  for (auto& [dest, flow] : pair.flows) {
    flow->each_transaction([&](Transaction& t) {
      if (t.state == Transaction::kFlying) {
        t.state = Transaction::kQuarantine;
        t.since_ns = core_.now_ns + core_.timers.response_ns;
      }
    });
  }
}

}  // namespace rio::model
