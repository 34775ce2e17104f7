#include "fpga/model/core/barrier_rings.hpp"

#include <algorithm>
#include <utility>

#include "fpga/model/core/barrier_seat.hpp"

namespace rio::model {
namespace {

using regs::Status;

[[nodiscard]] Answer answer_of(barrier::Answer answer) {
  switch (answer) {
    case barrier::Answer::kDone:
      return Answer::kDone;
    case barrier::Answer::kRetry:
      return Answer::kRetry;
    default:
      return Answer::kError;
  }
}
}  // namespace

BarrierRings::BarrierRings(Core& core, Transactions& transactions, Responder& responder)
    : core_(core), transactions_(transactions), responder_(responder), seats_(core.pairs.size()) {}
BarrierRings::~BarrierRings() = default;

BarrierRings::Seat& BarrierRings::seat(const Pair& pair) {
  return *seats_[pair.number];
}

void BarrierRings::open(Ring& ring) {
  std::unique_ptr<Seat>& seat = seats_[ring.pair->number];
  if (seat == nullptr) {
    seat = std::make_unique<Seat>(*this, *ring.pair);
  }
  seat->open();
  core_.chores |= kBarrierRingChore;
  set_running(true);
}

void BarrierRings::set_running(bool has_ring) {
  if (has_ring != has_ring_) {
    has_ring_ = has_ring;
    core_.wire->set_unpolled_work(has_ring);
  }
}

void BarrierRings::begin_stop(Ring& ring) {
  if (std::unique_ptr<Seat>& seat = seats_[ring.pair->number]; seat != nullptr) {
    seat->stop();
    core_.chores |= kBarrierChore;
  }
}

void BarrierRings::forget(Pair& pair) {
  if (seats_[pair.number] != nullptr) {
    seat(pair).close(false);
    seat(pair).clear_counters();
    core_.chores |= kBarrierChore;
  }
}

Pair* BarrierRings::receiver(const InFrame& doorbell) {
  const Owner* const owner = core_.owner(doorbell.dest);
  return owner == nullptr || owner->pair_of_doorbells == kNoPair
             ? nullptr
             : &core_.pairs[owner->pair_of_doorbells];
}

bool BarrierRings::is_for_ring(const InFrame& doorbell) {
  const Pair* const pair = receiver(doorbell);
  return pair != nullptr && pair->rings[kBarrierRing].running();
}

bool BarrierRings::on_notice(const InFrame& frame) {
  Frame* response = responder_.begin(frame, FrameType::kResponse, 0);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  const Answer answer = take(frame);
  core_.count_answer(answer);
  response->op = static_cast<uint8_t>(answer);
  responder_.send(response);
  return true;
}

Answer BarrierRings::take(const InFrame& frame) {
  if (core_.faults.draw(Fault::kError)) {
    return Answer::kError;
  }
  if (core_.faults.draw(Fault::kRetry)) {
    return Answer::kRetry;
  }
  return answer_of(seat(*receiver(frame)).receive(frame, false));
}

bool BarrierRings::on_pledge(const InFrame& frame) {
  // The first question is about the peer of the last answer, whose ring is at hand.
  if (!responder_.ready_for_one(frame.source, frame.dest) && !responder_.ready_for(frame, 1)) {
    return false;
  }
  ++core_.counts.rx_packets;
  // Without a ring it is refused, so that it comes again as a doorbell.
  const barrier::Answer answer =
      is_for_ring(frame) ? seat(*receiver(frame)).receive(frame, true) : barrier::Answer::kRetry;
  Frame* const response = answer == barrier::Answer::kNone
                              ? nullptr
                              : responder_.begin(frame, FrameType::kPledgeAnswer, 0);
  if (response != nullptr) {
    response->op = static_cast<uint8_t>(answer_of(answer));
    response->address = frame.address;
    core_.count_answer(answer_of(answer));
    responder_.send(response);
  }
  return true;
}

void BarrierRings::on_pledge_answer(const Flow& flow, const InFrame& frame) {
  if (seats_[flow.pair.number] != nullptr) {
    seat(flow.pair).pledge_answered(frame);
  }
}

void BarrierRings::on_end(const Flow& flow, const Transaction& transaction, Status status) {
  Seat& seat = this->seat(flow.pair);
  switch (status) {
    case Status::kOk:
      seat.answered(transaction.owner, barrier::Answer::kDone);
      break;
    case Status::kRetryExpired:
      seat.answered(transaction.owner, barrier::Answer::kRetry);
      break;
    case Status::kErrorResponse:
      seat.answered(transaction.owner, barrier::Answer::kError);
      break;
    default:
      break;  // the engine has time-outs of its own
  }
}

bool BarrierRings::send(Pair& pair, uint32_t dest_id, uint32_t tag, uint16_t info) {
  Flow* const flow = core_.link_up ? core_.flow(pair, dest_id) : nullptr;
  return flow != nullptr && !flow->way->gone &&
         transactions_.start_now(*flow, {.ring = kBarrierRing, .owner = tag, .address = info});
}

bool BarrierRings::send_pledge(Pair& pair, uint32_t dest_id, uint64_t address) {
  Flow* const flow = core_.link_up && !core_.exact ? core_.flow(pair, dest_id) : nullptr;
  constexpr uint32_t kBytes = frame_bytes(0);
  if (flow == nullptr || flow->way->gone || !flow->way->takes_pledges ||
      !flow->way->requests->has_short_room(kBytes)) {
    return false;
  }
  const FrameHead head = {static_cast<uint64_t>(FrameType::kPledge) << 32,
                          pair.dest_id | uint64_t{dest_id} << 32, 0, address};
  if (flow->way->requests->put_short(kBytes, head, [](uint8_t* /*payload*/) {})) {
    flow->way->requests->wake();
  }
  ++core_.counts.tx_packets;
  return true;
}

bool BarrierRings::answers_wait() const {
  return std::ranges::any_of(core_.wire->inbound(),
                             [](Inbound& in) { return in.responses->peek() != nullptr; });
}

void BarrierRings::work() {
  uint32_t chores = core_.chores & kStopChore;
  for (const std::unique_ptr<Seat>& seat : seats_) {
    if (seat == nullptr || !(seat->is_open() || seat->is_busy())) {
      continue;
    }
    seat->work();
    chores |= uint32_t{seat->is_open()} * kBarrierRingChore;
    chores |= uint32_t{seat->is_busy()} * kBarrierChore;
  }
  core_.chores = static_cast<uint8_t>(chores);
  set_running((chores & kBarrierRingChore) != 0);
}

bool BarrierRings::start() {
  bool has_started = false;
  for (const std::unique_ptr<Seat>& seat : seats_) {
    has_started = (seat != nullptr && seat->start()) || has_started;
  }
  note_chores();
  return has_started;
}

void BarrierRings::expect_start() {
  for (const std::unique_ptr<Seat>& seat : seats_) {
    if (seat != nullptr) {
      seat->expect_start();
    }
  }
}

bool BarrierRings::waits() const {
  return std::ranges::any_of(seats_,
                             [](const auto& seat) { return seat != nullptr && seat->waits(); });
}

void BarrierRings::note_chores() {
  const bool is_busy = std::ranges::any_of(
      seats_, [](const auto& seat) { return seat != nullptr && seat->is_busy(); });
  core_.chores =
      static_cast<uint8_t>(is_busy ? core_.chores | kBarrierChore : core_.chores & ~kBarrierChore);
}

bool BarrierRings::has_posted() const {
  return std::ranges::any_of(
      seats_, [](const auto& seat) { return seat != nullptr && seat->has_posted(); });
}

bool BarrierRings::needs_time() const {
  return std::ranges::any_of(
      seats_, [](const auto& seat) { return seat != nullptr && seat->needs_time(); });
}

}  // namespace rio::model
