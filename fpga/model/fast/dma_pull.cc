#include "fpga/model/fast/dma_pull.hpp"

namespace rio::model {
namespace {

using regs::DmaOp;
using regs::Status;

[[nodiscard]] bool has_part(const InFrame& frame) {
  return frame.length == sizeof(PullPart) && frame_bytes(frame.length) <= frame.bytes;
}

/// Read the part of a frame; each word only once, since the sender may overwrite it.
[[nodiscard]] PullPart part_of(const InFrame& frame) {
  return {pinned(load64(frame.payload())),
          static_cast<uint32_t>(pinned(load64(frame.payload() + 8))), 0};
}

}  // namespace

void DmaPull::add(const Pull& pull, const PullPiece& piece) {
  pulls_[count_] = pull;
  pieces_[count_] = piece;
  ++count_;
  bytes_ += piece.len_bytes;
}

bool DmaPull::on_request(Puller* puller, const InFrame& frame, bool in_packets) {
  const PullPart part = has_part(frame) ? part_of(frame) : PullPart{};
  const auto op = static_cast<DmaOp>(frame.op);
  const bool fits = !in_packets && !core_.exact && part.length - 1 < kLongBytesMax;
  uint64_t bus = 0;
  HostPort* const host = fits ? target_.find_long(frame, part.length, &bus) : nullptr;
  if (op != DmaOp::kNwriteR) {
    end_pulls(puller);  // the read comes after them
    return answer_read(frame, part, op == DmaOp::kNread ? host : nullptr, bus);
  }
  if (is_full() || !responder_.ready_for(frame, count_ + 1)) {
    return false;
  }
  uint8_t* const to = host != nullptr ? host->large(bus, part.length, true) : nullptr;
  if (puller == nullptr || to == nullptr) {
    answer(frame, false, part.length);
  } else {
    add({frame, nullptr, {}}, {to, part.address, part.length});
  }
  return true;
}

/// Tell the reader where the bytes are. @param host null: refuse. @return false: no room for the
/// answer.
bool DmaPull::answer_read(const InFrame& frame, const PullPart& part, HostPort* host,
                          uint64_t bus) {
  const uint8_t* const from =
      host != nullptr && !host->is_silent() ? host->large(bus, part.length, false) : nullptr;
  Outbound* const out = core_.wire->route(frame.source);
  if (from == nullptr || out == nullptr) {
    if (!responder_.ready_for(frame, 1)) {
      return false;
    }
    answer(frame, false, part.length);
    return true;
  }
  Frame* const response = responder_.begin(frame, FrameType::kReadable, sizeof(PullPart));
  if (response == nullptr) {
    return false;
  }
  const PullPart told = {reinterpret_cast<uintptr_t>(from), part.length, 0};
  std::memcpy(response->payload(), &told, sizeof(told));
  response->op = static_cast<uint8_t>(Answer::kDone);
  target_.promise(*out, frame.source, out->responses->tail());
  core_.counts.rx_packets += long_packets(part.length);
  responder_.send(response);
  return true;
}

/// Answer a write, or refuse a request. There is room: ready_for() has said so.
void DmaPull::answer(const InFrame& frame, bool is_done, uint32_t length) {
  Frame* const response = responder_.begin(frame, FrameType::kResponse, 0);
  core_.counts.rx_packets += is_done ? long_packets(length) : 0;
  if (response != nullptr) {  // else the reader took room back that it had given: drop its answer
    response->op = is_done ? static_cast<uint8_t>(Answer::kDone) : kInPackets;
    responder_.send(response);
  }
}

void DmaPull::on_response(Puller* puller, Flow& flow, Transaction& transaction,
                          const InFrame& response) {
  const Transaction ended = transaction;
  transactions_.end(flow, transaction);  // a second answer finds nothing
  const bool reads = static_cast<DmaOp>(ended.op) == DmaOp::kNread;
  if (response.type == FrameType::kRevoked ||
      (response.type == FrameType::kResponse && response.op == kInPackets)) {
    end(ended, std::nullopt);
    return;
  }
  if (response.type == FrameType::kResponse && !reads &&
      static_cast<Answer>(response.op) == Answer::kDone) {
    end(ended, Status::kOk);
    return;
  }
  const PullPart part = has_part(response) ? part_of(response) : PullPart{};
  if (response.type != FrameType::kReadable || !reads || part.length != ended.length) {
    end(ended, Status::kErrorResponse);
    return;
  }
  uint8_t* const to = flow.pair.function->host->large(ended.bus_addr, ended.length, true);
  if (puller == nullptr || to == nullptr) {
    flow.reads_in_packets = flow.reads_in_packets || puller == nullptr;
    end(ended, std::nullopt);
    return;
  }
  add({response, &flow, ended}, {to, part.address, part.length});
}

void DmaPull::end(const Transaction& transaction, std::optional<Status> status) {
  if (status.has_value()) {
    dma_.on_end(transaction, *status);
  } else {
    transactions_.uncount(transaction);
    dma_.send_in_packets(transaction);
  }
}

void DmaPull::end_pulls(Puller* puller) {
  if (count_ == 0) {
    return;
  }
  uint64_t pulled = puller->pull({pieces_.data(), count_});
  for (uint32_t i = 0; i < count_; ++i) {
    const Pull& pull = pulls_[i];
    const uint32_t bytes = pieces_[i].len_bytes;
    const bool is_whole = pulled >= bytes;
    pulled -= is_whole ? bytes : pulled;
    // The sender may have revoked the frame meanwhile: then the bytes are not those that it meant.
    const bool is_valid = is_still(pull.frame.type, pull.frame.at);
    const bool is_done = is_whole && is_valid;
    if (pull.flow == nullptr) {
      answer(pull.frame, is_done, bytes);
    } else {
      pull.flow->reads_in_packets = pull.flow->reads_in_packets || (is_valid && !is_whole);
      end(pull.transaction, is_done ? std::optional(Status::kOk) : std::nullopt);
    }
  }
  count_ = 0;
}

}  // namespace rio::model
