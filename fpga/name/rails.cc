#include "fpga/name/rails.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fpga/name/keys.hpp"
#include "fpga/name/parse.hpp"
#include "fpga/name/pci_address.hpp"

namespace rio::name {
namespace {

[[nodiscard]] bool begins_a_card(std::string_view text) {
  PciAddress address;
  const std::string_view word = text.substr(0, text.find_first_of(",+"));
  return std::ranges::any_of(kinds(), [&](const KindRow& row) {
    return row.prefix.empty()
               ? word.find(':') != std::string_view::npos && read_pci_address(word, &address)
               : text.starts_with(row.prefix);
  });
}

[[nodiscard]] std::vector<std::string> divide(std::string_view text) {
  std::vector<std::string> names;
  size_t begin = 0;
  for (size_t plus = text.find('+'); plus != std::string_view::npos;
       plus = text.find('+', plus + 1)) {
    if (begins_a_card(text.substr(plus + 1))) {
      names.emplace_back(text.substr(begin, plus - begin));
      begin = plus + 1;
    }
  }
  names.emplace_back(text.substr(begin));
  return names;
}

/// Whether two names can only be the same card, or two ends of one cable.
[[nodiscard]] bool is_same(const CardName& one, const CardName& other) {
  if (one.kind.index() != other.kind.index()) {
    return false;
  }
  if (const auto* const pci = std::get_if<Pci>(&one.kind)) {
    return pci->address == std::get<Pci>(other.kind).address;
  }
  if (const auto* const sim = std::get_if<Sim>(&one.kind)) {
    return sim->socket == std::get<Sim>(other.kind).socket;
  }
  if (const auto* const plug = std::get_if<Switched>(&one.kind)) {
    return plug->topology == std::get<Switched>(other.kind).topology &&
           plug->at == std::get<Switched>(other.kind).at;
  }
  const auto* const cable = std::get_if<Cable>(&one.kind);
  return cable != nullptr && cable->name != "loop" &&
         cable->name == std::get<Cable>(other.kind).name;
}

}  // namespace

int parse_cards(std::string_view text, std::vector<std::string>* names, std::vector<CardName>* out,
                std::string* error) {
  std::vector<std::string> texts = divide(text);
  if (texts.size() > kCardsMax) {
    *error = std::to_string(texts.size()) + " cards: a name has at most " +
             std::to_string(kCardsMax) + ", joined by '+'";
    return -EINVAL;
  }
  std::vector<CardName> cards;
  for (const std::string& one : texts) {
    if (const int rc = parse(Place::kProgram, one, {}, &cards.emplace_back(), error); rc != 0) {
      return rc;
    }
    const auto same = std::ranges::find_if(cards.begin(), cards.end() - 1, [&](const CardName& it) {
      return is_same(it, cards.back());
    });
    if (same != cards.end() - 1) {
      *error = "card " + std::to_string(cards.size()) + ", '" + one + "', is also card " +
               std::to_string(same - cards.begin() + 1) + ": name each card once";
      return -EINVAL;
    }
  }
  *names = std::move(texts);
  *out = std::move(cards);
  return 0;
}

}  // namespace rio::name
