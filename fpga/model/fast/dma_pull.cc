#include "fpga/model/fast/dma_pull.hpp"

#include <algorithm>

namespace rio::model {
namespace {

using regs::DmaOp;
using regs::Status;

/// RapidIO addresses at the top are never leased: the rail status is there, and what may reach it
/// goes in packets (RailBlock::claims_long()).
constexpr uint64_t kTopBytes = kDmaBytesMax + uint64_t{sizeof(regs::RailStatus)};

[[nodiscard]] bool has_part(const InFrame& frame) {
  return frame.length == sizeof(PullPart) && frame_bytes(frame.length) <= frame.bytes;
}

/// Read the part of a frame; each word only once, since the sender may overwrite it.
[[nodiscard]] PullPart part_of(const InFrame& frame) {
  return {pinned(load64(frame.payload())),
          static_cast<uint32_t>(pinned(load64(frame.payload() + 8))), 0};
}

[[nodiscard]] bool has_readable(const InFrame& frame) {
  return frame.length == sizeof(Readable) && frame_bytes(frame.length) <= frame.bytes;
}

/// Read the payload of a kReadable, each word only once.
[[nodiscard]] Readable readable_of(const InFrame& frame) {
  const auto word = [&](size_t offset) { return pinned(load64(frame.payload() + offset)); };
  return {part_of(frame), word(offsetof(Readable, before_bytes)),
          word(offsetof(Readable, after_bytes)), word(offsetof(Readable, lease))};
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
  TargetEngine::Place place = fits ? target_.find_long(frame, part.length) : TargetEngine::Place{};
  if (op != DmaOp::kNwriteR) {
    end_pulls(puller);  // the read comes after them
    place.host = op == DmaOp::kNread ? place.host : nullptr;
    return answer_read(frame, part, place);
  }
  if (is_full() || !responder_.ready_for(frame, count_ + 1)) {
    return false;
  }
  uint8_t* const to =
      place.host != nullptr ? place.host->large(place.bus, part.length, true) : nullptr;
  if (puller == nullptr || to == nullptr) {
    answer(frame, false, part.length);
  } else {
    add({frame, nullptr, {}, 0, true}, {to, part.address, part.length});
  }
  return true;
}

/// Tell the reader where the bytes are, and how many there are around them. @return false: no room
/// for the answer.
bool DmaPull::answer_read(const InFrame& frame, const PullPart& part,
                          const TargetEngine::Place& place) {
  HostPort* const host = place.host;
  const uint8_t* const from =
      host != nullptr && !host->is_silent() ? host->large(place.bus, part.length, false) : nullptr;
  const uint64_t lease = core_.wire->lease_number();
  if (from == nullptr || lease == 0) {
    if (!responder_.ready_for(frame, 1)) {
      return false;
    }
    answer(frame, false, part.length);
    return true;
  }
  Frame* const response = responder_.begin(frame, FrameType::kReadable, sizeof(Readable));
  if (response == nullptr) {
    return false;
  }
  const HostWindow& mapped = host->large_read_window();
  const uint64_t before = place.bus - mapped.iova;
  const uint64_t below_top = ~(frame.address + part.length) + 1;
  const uint64_t most_after = below_top - std::min(below_top, kTopBytes);
  const Readable told = {.part = {reinterpret_cast<uintptr_t>(from), part.length, 0},
                         .before_bytes = std::min(before, place.before_bytes),
                         .after_bytes = std::min({mapped.len_bytes - before - part.length,
                                                  place.after_bytes, most_after}),
                         .lease = lease};
  std::memcpy(response->payload(), &told, sizeof(told));
  response->op = static_cast<uint8_t>(Answer::kDone);
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
  if (response.type == FrameType::kResponse && response.op == kInPackets) {
    end(ended, std::nullopt);
    return;
  }
  if (response.type == FrameType::kResponse && !reads &&
      static_cast<Answer>(response.op) == Answer::kDone) {
    end(ended, Status::kOk);
    return;
  }
  const Readable told = has_readable(response) ? readable_of(response) : Readable{};
  if (response.type != FrameType::kReadable || !reads || told.part.length != ended.length) {
    end(ended, Status::kErrorResponse);
    return;
  }
  uint8_t* const to = flow.pair.function->host->large(ended.bus_addr, ended.length, true);
  if (puller == nullptr || to == nullptr || puller->lease_number() != told.lease) {
    flow.reads_in_packets = flow.reads_in_packets || puller == nullptr;
    end(ended, std::nullopt);
    return;
  }
  if (flow.leases == nullptr) {
    flow.leases = std::make_unique<Leases>();
  }
  flow.leases->add(ended.address, told);
  add({{}, &flow, ended, told.lease, true}, {to, told.part.address, told.part.length});
}

void DmaPull::progress(bool may_read) {
  dma_.progress(may_read);
  Puller* puller = nullptr;
  for (const DmaEngine::Leased& one : dma_.leased()) {
    Puller* const from = one.flow->way->puller;
    if (from != puller || count_ == kPiecesMax) {
      end_turn(puller);
      puller = from;
    }
    HostPort& host = *one.flow->pair.function->host;
    uint8_t* const to = host.large(one.read.bus_addr, one.read.length, true);
    add({{}, one.flow, one.read, one.lease, false}, {to, one.va, one.read.length});
  }
  end_turn(puller);
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
    const uint32_t wanted = pieces_[i].len_bytes;
    const uint64_t bytes = std::min<uint64_t>(pulled, wanted);
    pulled -= bytes;
    if (pull.flow != nullptr) {
      end_read(pull, *puller, bytes);
      continue;
    }
    // The sender may have revoked the frame meanwhile: then the bytes are not those that it meant.
    answer(pull.frame, bytes == wanted && is_still(pull.frame.type, pull.frame.at), wanted);
  }
  count_ = 0;
}

void DmaPull::end_read(const Pull& pull, const Puller& puller, uint64_t pulled_bytes) {
  const Transaction& read = pull.transaction;
  const bool is_valid = puller.lease_number() == pull.lease;
  if (!is_valid && !pull.is_asked) {
    transactions_.uncount(read);
    dma_.ask(read);
    return;
  }
  if (!is_valid || pulled_bytes != read.length) {
    pull.flow->reads_in_packets = pull.flow->reads_in_packets || is_valid;
    end(read, std::nullopt);
    return;
  }
  if (!pull.is_asked) {
    puller.count_leased(long_packets(read.length));
  }
  end(read, Status::kOk);
}

}  // namespace rio::model
