#include "fpga/wire/udp/connection.hpp"

#include <cerrno>

namespace rio::wire::udp {
namespace {

constexpr uint32_t kWindow = 512;     // units
constexpr uint32_t kAnswerAfter = 8;  // unacknowledged units
constexpr uint32_t kFrameAlign = 32;  // units are cut between parts of a frame, of 32 bytes

}  // namespace

Connection::Connection(const Agreed& agreed, Intake* intake, uint64_t now_ns)
    : agreed_(agreed),
      more_bytes_(static_cast<uint32_t>(kHeaderBytes + (agreed.sealed ? kTagBytes : 0))),
      unit_bytes_((agreed.datagram_bytes - more_bytes_) / kFrameAlign * kFrameAlign),
      intake_(intake),
      congestion_(unit_bytes_),
      senders_{Sender(kWindow, 0, &congestion_), Sender(kWindow, 0, &congestion_)},
      receivers_{Receiver(kWindow, 0), Receiver(kWindow, 0)},
      heard_ns_(now_ns) {}

std::span<uint8_t> Connection::begin_unit(UnitKind lane) {
  // Frames that cannot be sent yet stay with the card, so that more urgent ones can overtake them.
  const uint64_t kept = uint64_t{senders_[0].kept()} + senders_[1].kept();
  const uint64_t soon = congestion_.window_bytes() / unit_bytes_ + 8;
  return lane == UnitKind::kRequests && kept > soon ? std::span<uint8_t>{}
                                                    : sender(lane).begin(unit_bytes_);
}

int Connection::take(std::span<uint8_t> bytes, uint64_t now_ns) {
  if (bytes.size() < kHeaderBytes) {
    return -EPROTO;
  }
  const uint64_t number = header_of(bytes).number;
  if (agreed_.sealed) {
    const size_t opened = open(agreed_.in_key, number, bytes, kClearBytes);
    if (opened == 0) {
      return -EACCES;
    }
    if (!replay_.take(number)) {
      return -EALREADY;
    }
    bytes = bytes.first(opened);
  }
  Datagram datagram;
  if (const int rc = decode(bytes, &datagram); rc != 0) {
    return rc;
  }
  heard_ns_ = now_ns;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (const int rc = senders_[lane].heard(datagram.heard[lane], now_ns); rc != 0) {
      return rc;
    }
  }
  answer_now_ = answer_now_ || datagram.asks;
  for (const UnitKind lane : {UnitKind::kResponses, UnitKind::kRequests}) {
    const Part& part = datagram.parts[static_cast<size_t>(lane)];
    if (const int rc = part.payload.empty() ? 0 : put(lane, part); rc != 0) {
      return rc;
    }
  }
  return 0;
}

int Connection::put(UnitKind lane, const Part& part) {
  Receiver& to = receiver(lane);
  if (to.is_next(part.unit) && intake_->take(lane, part.payload)) {
    to.skip();
    static_cast<void>(offer(lane));  // the unit before it may be waiting there
    answer_now_ = ++unanswered_ >= kAnswerAfter || answer_now_;
    return 0;
  }
  if (to.put(part.unit, part.payload) == Arrival::kOutside) {
    return -EPROTO;
  }
  ++unanswered_;
  answer_now_ = true;  // out of order, no room, or the last answer was lost
  return 0;
}

bool Connection::offer(UnitKind lane) {
  Receiver& from = receiver(lane);
  bool any = false;
  for (auto unit = from.front(); !unit.empty(); unit = from.front()) {
    if (!intake_->take(lane, unit)) {
      break;
    }
    from.pop();
    any = true;
  }
  return any;
}

bool Connection::offer_again() {
  const bool responses = offer(UnitKind::kResponses);
  const bool requests = offer(UnitKind::kRequests);
  if (responses || requests) {
    answer_now_ = true;  // the peer may wait for the room
  }
  return responses || requests;
}

size_t Connection::write(std::span<uint8_t> out, Datagram& datagram) {
  datagram.session = agreed_.their_session;
  datagram.number = ++number_;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    datagram.heard[lane] = receivers_[lane].heard();
  }
  unanswered_ = 0;
  answer_now_ = false;
  const size_t used = encode(datagram, out);
  return agreed_.sealed ? seal(agreed_.out_key, number_, out, used, kClearBytes) : used;
}

size_t Connection::send(uint64_t now_ns, std::span<uint8_t> out) {
  Datagram datagram;
  size_t room = unit_bytes_;
  bool any = false;
  for (const UnitKind lane : {UnitKind::kResponses, UnitKind::kRequests}) {
    const uint32_t bytes = sender(lane).next_bytes();
    if (bytes == 0 || bytes > room) {
      continue;
    }
    datagram.parts[static_cast<size_t>(lane)] = sender(lane).send(now_ns);
    room -= bytes;
    any = true;
  }
  return any ? write(out, datagram) : 0;
}

}  // namespace rio::wire::udp
