#include "fpga/cardsim/sim_card.hpp"

#include <bit>
#include <cstring>

#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

void add(model::Card& card, CardCounts* sum) {
  const model::Statistics now = card.statistics();
  const auto port = std::bit_cast<std::array<uint32_t, 8>>(now.port);
  for (size_t i = 0; i < port.size(); ++i) {
    sum->port[i] += port[i];
    sum->faults[i] += now.faults[i];
  }
  if (sum->refused == 0) {
    sum->first_refused_address = now.first_refused_address;
  }
  sum->refused += now.refused;
}

[[nodiscard]] model::FunctionEnds ends_of(Attachment& attachment) {
  return {attachment.bar(), &attachment.memory(), attachment.irqs()};
}

}  // namespace

int SimCard::attach_function(const Way& way) {
  std::unique_ptr<Attachment> attachment;
  const int rc =
      std::visit([&](const auto& kind) { return attach(kind, spec_, &attachment); }, way);
  if (rc == 0) {
    attachments_.push_back(std::move(attachment));
  }
  return rc;
}

int SimCard::create(const CardSpec& spec, Plug plug, std::unique_ptr<SimCard>* out) {
  std::unique_ptr<SimCard> card(new SimCard(spec, std::move(plug)));
  int rc = card->attach_function(spec.way);
  for (uint32_t vf = 0; rc == 0 && vf < spec.model.vfs; ++vf) {
    rc = card->attach_function(way_of_vf(spec.way, vf));
  }
  rc = rc != 0 ? rc : card->power_on();
  if (rc != 0) {
    return rc;
  }
  *out = std::move(card);
  return 0;
}

int SimCard::power_on() {
  model::Ends ends;
  static_cast<model::FunctionEnds&>(ends) = ends_of(*attachments_.front());
  for (uint32_t vf = 0; vf < spec_.model.vfs; ++vf) {
    ends.vfs.push_back(ends_of(*attachments_[vf + 1]));
  }
  ends.clock = &clock_;
  ends.wire = plug_();
  const int rc = model::Card::create(spec_.model, std::move(ends), &card_);
  if (rc != 0) {
    complain("%s: the model refuses this card: %s", spec_.name.c_str(), std::strerror(-rc));
  }
  return rc;
}

int SimCard::serve_vf(uint32_t vf) {
  Attachment& attachment = *attachments_[vf + 1];
  attachment.serve();
  if (attachment.peer() != Attachment::Peer::kGone) {
    return 0;
  }
  const int rc = attachment.renew();
  if (rc != 0) {
    complain("%s: no memory for the BAR of virtual function %u: %s", spec_.name.c_str(), vf,
             std::strerror(-rc));
    return rc;
  }
  card_->replug_vf(vf, ends_of(attachment));
  return 0;
}

int SimCard::serve() {
  for (uint32_t vf = 0; vf < spec_.model.vfs; ++vf) {
    if (const int rc = serve_vf(vf); rc != 0) {
      return rc;
    }
  }
  Attachment& physical = *attachments_.front();
  physical.serve();
  const Attachment::Peer peer = physical.peer();
  if (peer != Attachment::Peer::kGone) {
    left_ = left_ && peer != Attachment::Peer::kHere;
    return 0;
  }
  left_ = true;
  add(*card_, &earlier_);
  card_.reset();
  if (const int rc = physical.renew(); rc != 0) {
    complain("%s: no memory for the next peer's BAR: %s", spec_.name.c_str(), std::strerror(-rc));
    return rc;
  }
  return power_on();
}

CardCounts SimCard::counts() {
  CardCounts sum = earlier_;
  add(*card_, &sum);
  return sum;
}

}  // namespace rio::cardsim
