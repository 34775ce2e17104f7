#include "fpga/cardsim/card_spec.hpp"

#include "fpga/cardsim/complain.hpp"
#include "fpga/name/model_config.hpp"
#include "fpga/name/parse.hpp"

namespace rio::cardsim {
namespace {

/// Sets the default of name=, and the number of interrupts.
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

Way way_of_vf(const Way& physical, uint32_t vf) {
  const std::string suffix = ".vf" + std::to_string(vf);
  Way way = physical;
  std::visit(
      [&]<class Kind>(Kind& kind) {
        if constexpr (std::is_same_v<Kind, name::Plain>) {
          kind.bar += suffix;
        } else {
          kind.socket += suffix;
        }
        if constexpr (!std::is_same_v<Kind, name::Listen>) {
          kind.guest.bdf = static_cast<uint16_t>(kind.guest.bdf + 1 + vf);
        }
      },
      way);
  return way;
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
