#include "fpga/cardsim/card_spec.hpp"

#include "fpga/cardsim/complain.hpp"
#include "fpga/name/model_config.hpp"
#include "fpga/name/parse.hpp"

namespace rio::cardsim {
namespace {

/// What a card is called unless name= says it, and how many interrupts it has.
void complete(const name::Plain& plain, CardSpec* spec) {
  spec->name = plain.bar;
}
void complete(const name::Doorbell& doorbell, CardSpec* spec) {
  spec->name = doorbell.socket;
  spec->model.vectors = doorbell.vectors;
}
void complete(const name::Listen& listen, CardSpec* spec) {
  spec->name = listen.socket;
}

}  // namespace

const char* kind_name(const Way& way) {
  constexpr const char* kNames[] = {"plain", "doorbell", "listen"};
  return kNames[way.index()];
}

int parse_card_spec(std::string_view text, CardSpec* out) {
  name::CardName card;
  std::string error;
  if (const int rc = name::parse(name::Place::kCardsim, text, {}, &card, &error); rc != 0) {
    complain("--card %s: %s", std::string(text).c_str(), error.c_str());
    return rc;
  }
  CardSpec spec;
  spec.at = card.at;
  spec.model = name::model_config(card.model);
  std::visit(
      [&](auto& kind) {
        if constexpr (std::is_constructible_v<Way, decltype(kind)>) {
          complete(kind, &spec);
          spec.way = std::move(kind);
        }
      },
      card.kind);
  if (!card.label.empty()) {
    spec.name = card.label;
  }
  *out = std::move(spec);
  return 0;
}

}  // namespace rio::cardsim
