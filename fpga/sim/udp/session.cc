#include "fpga/sim/udp/session.hpp"

#include <algorithm>
#include <cerrno>

#include "fpga/sim/udp/bytes.hpp"

namespace rio::sim::udp {
namespace {

constexpr uint32_t kWindow = 512;     // units
constexpr uint32_t kAnswerAfter = 8;  // units that nobody was told of
constexpr uint32_t kFrameAlign = 32;  // units are cut between a frame's parts of 32 bytes
constexpr size_t kNumberAt = 8;

[[nodiscard]] uint32_t unit_of(const Agreed& agreed) {
  const size_t more = kHeaderBytes + (agreed.sealed ? kTagBytes : 0);
  return static_cast<uint32_t>((agreed.datagram_bytes - more) / kFrameAlign * kFrameAlign);
}

}  // namespace

Session::Session(const Agreed& agreed, Intake* intake, uint64_t now_ns)
    : agreed_(agreed),
      unit_bytes_(unit_of(agreed)),
      intake_(intake),
      congestion_(unit_bytes_),
      senders_{Sender(kWindow, 0, &congestion_), Sender(kWindow, 0, &congestion_)},
      receivers_{Receiver(kWindow, 0), Receiver(kWindow, 0)},
      heard_ns_(now_ns) {}

std::span<uint8_t> Session::begin_unit(Lane lane) {
  // What cannot go yet stays with the card, so that it is not sent before what is more urgent.
  const uint64_t kept = uint64_t{senders_[0].kept()} + senders_[1].kept();
  const uint64_t soon = congestion_.window_bytes() / unit_bytes_ + 8;
  return lane == Lane::kRequests && kept > soon ? std::span<uint8_t>{}
                                                : sender(lane).begin(unit_bytes_);
}

int Session::take(std::span<uint8_t> bytes, uint64_t now_ns) {
  if (bytes.size() < kHeaderBytes) {
    return -EPROTO;
  }
  const uint64_t number = get_field(bytes.data() + kNumberAt, 8);
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
  return datagram.payload.empty() ? 0 : put(datagram);
}

int Session::put(const Datagram& datagram) {
  Receiver& lane = receiver(datagram.lane);
  if (lane.is_next(datagram.unit) && intake_->take(datagram.lane, datagram.payload)) {
    lane.skip();
    offer(datagram.lane);  // what came before it, and waits for it
    answer_now_ = ++unanswered_ >= kAnswerAfter || answer_now_;
    return 0;
  }
  const Arrival arrival = lane.put(datagram.unit, datagram.payload);
  if (arrival == Arrival::kOutside) {
    return -EPROTO;
  }
  ++unanswered_;
  answer_now_ = true;  // it is not in order, or there is no room, or the answer was lost
  return 0;
}

bool Session::offer(Lane lane) {
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

bool Session::offer_again() {
  const bool responses = offer(Lane::kResponses);
  const bool requests = offer(Lane::kRequests);
  if (responses || requests) {
    answer_now_ = true;  // the peer may wait for the room
  }
  return responses || requests;
}

void Session::write(uint8_t* header, Datagram& datagram) {
  datagram.session = agreed_.their_session;
  datagram.number = ++number_;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    datagram.heard[lane] = receivers_[lane].heard();
  }
  write_header(datagram, header);
  unanswered_ = 0;
  answer_now_ = false;
}

bool Session::send(uint64_t now_ns, uint8_t* header, std::span<const uint8_t>* payload) {
  for (const Lane lane : {Lane::kResponses, Lane::kRequests}) {
    const Outgoing unit = sender(lane).send(now_ns);
    if (!unit.bytes.empty()) {
      Datagram datagram;
      datagram.lane = lane;
      datagram.unit = unit.unit;
      datagram.payload = unit.bytes;
      write(header, datagram);
      *payload = unit.bytes;
      return true;
    }
  }
  return false;
}

void Session::answer(uint8_t* header, bool asks) {
  Datagram datagram;
  datagram.asks = asks;
  write(header, datagram);
}

size_t Session::seal(std::span<uint8_t> bytes, size_t used) const {
  return !agreed_.sealed ? used : udp::seal(agreed_.out_key, number_, bytes, used, kClearBytes);
}

uint64_t Session::due_ns() const {
  return std::min(senders_[0].due_ns(), senders_[1].due_ns());
}

void Session::look(uint64_t now_ns) {
  for (Sender& each : senders_) {
    each.look(now_ns);
  }
}

}  // namespace rio::sim::udp
