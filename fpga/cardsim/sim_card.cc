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

}  // namespace

int SimCard::create(const CardSpec& spec, Plug plug, std::unique_ptr<SimCard>* out) {
  std::unique_ptr<SimCard> card(new SimCard(spec, std::move(plug)));
  if (const int rc = std::visit(
          [&](const auto& way) { return attach(way, spec, &card->attachment_); }, spec.way);
      rc != 0) {
    return rc;
  }
  if (const int rc = card->power_on(); rc != 0) {
    return rc;
  }
  *out = std::move(card);
  return 0;
}

int SimCard::power_on() {
  model::Ends ends;
  ends.bar = attachment_->bar();
  ends.memory = &attachment_->memory();
  ends.clock = &clock_;
  ends.irqs = attachment_->irqs();
  ends.wire = plug_();
  const int rc = model::Card::create(spec_.model, std::move(ends), &card_);
  if (rc != 0) {
    complain("%s: the model refuses this card: %s", spec_.name.c_str(), std::strerror(-rc));
  }
  return rc;
}

int SimCard::serve() {
  attachment_->serve();
  const Attachment::Peer peer = attachment_->peer();
  if (peer != Attachment::Peer::kGone) {
    left_ = left_ && peer != Attachment::Peer::kHere;
    return 0;
  }
  left_ = true;
  add(*card_, &earlier_);
  card_.reset();
  if (const int rc = attachment_->renew(); rc != 0) {
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
