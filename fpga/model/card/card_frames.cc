// Who of the card gets a frame, and what becomes of what flies to a partner that has gone.
#include "fpga/model/card/card_impl.hpp"
#include "fpga/model/core/whole.hpp"

namespace rio::model {

bool Card::Impl::on_request(const InFrame& frame) {
  if (frame.type == FrameType::kMessage && core.link_up && whole(frame)) [[likely]] {
    return rx.on_message(frame);
  }
  if (!core.link_up || !whole(frame)) {
    return true;  // lost on the way
  }
  switch (frame.type) {
    case FrameType::kSegment:
      return rx.on_segment(frame);
    case FrameType::kDoorbell:
      return rx.on_doorbell(frame);
    case FrameType::kRequest:
      return target.on_request(frame);
    case FrameType::kMaintRequest:
      return maint.on_request(frame);
    case FrameType::kPortWrite:
      maint.on_port_write(frame);
      return true;
    default:
      return true;
  }
}

void Card::Impl::on_response(const InFrame& frame) {
  if (!whole(frame)) {
    return;
  }
  if (frame.type == FrameType::kAcks) [[likely]] {
    tx.on_acks(frame);
    return;
  }
  if (frame.type == FrameType::kPulled) {
    tx.on_pulled(frame);
    return;
  }
  Pair* pair = core.sender(frame.dest);
  Flow* flow = pair == nullptr ? nullptr : core.known_flow(*pair, frame.source);
  Transaction* transaction = flow == nullptr ? nullptr : transactions.answered(*flow, frame);
  if (transaction == nullptr) {
    return;
  }
  switch (transaction->kind) {
    case Transaction::kDoorbell:
      tx.on_doorbell_answer(*pair, *flow, *transaction, static_cast<Answer>(frame.op));
      break;
    case Transaction::kDma:
      dma.on_response(*pair, *flow, *transaction, frame);
      break;
    default:
      maint.on_response(*pair, *flow, *transaction, frame);
  }
}

void Card::Impl::take_changes() {
  PartnerChange change{};
  while (core.wire->next_change(&change)) {
    on_change(change);
  }
}

void Card::Impl::on_change(const PartnerChange& change) {
  for (Pair& pair : core.pairs) {
    const auto it = pair.flows.find(change.dest_id);
    if (!change.here && it != pair.flows.end()) {
      tx.lose(pair, *it->second);
      expire(transactions.lose(pair, *it->second));
    }
    if (change.times != 0) {  // else nobody was ever there
      core.event(pair, regs::EventType::kPartner, change.dest_id, change.here ? 1 : 0,
                 {change.times, 0, 0, 0});
    }
  }
  if (!change.here) {
    rx.lose(change.dest_id);
  }
}

void Card::Impl::expire(const std::vector<Transactions::Expired>& all) {
  for (const Transactions::Expired& late : all) {
    core.counts.tx_timeouts += late.status == regs::Status::kResponseTimeout ? 1 : 0;
    switch (late.transaction->kind) {
      case Transaction::kDoorbell:
        tx.on_doorbell_expired(*late.pair, *late.transaction, late.status);
        break;
      case Transaction::kDma:
        dma.on_expired(*late.transaction, late.status);
        break;
      default:
        maint.on_expired(*late.transaction, late.status);
    }
    transactions.expire(*late.flow, *late.transaction);
  }
}

}  // namespace rio::model
