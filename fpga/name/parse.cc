#include "fpga/name/parse.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/number.hpp"
#include "fpga/name/keys.hpp"

namespace rio::name {
namespace {

using Text = std::string_view;

constexpr Text kWireKey = "wire";
constexpr Text kEmu = "emu:";
constexpr Text kSwitched = "emu:fabric";
constexpr uint32_t kDeviceQueuePairs = 2;

[[nodiscard]] bool is_dpdk(Place place) {
  return place == Place::kDevice || place == Place::kPciDevice;
}

[[nodiscard]] Text key_of(Text piece) {
  return piece.substr(0, piece.find('='));
}
[[nodiscard]] Text value_of(Text piece) {
  return piece.substr(std::min(key_of(piece).size() + 1, piece.size()));
}

/// The pieces between commas: at least one.
[[nodiscard]] std::vector<Text> split(Text text) {
  std::vector<Text> pieces;
  for (size_t comma = text.find(','); comma != Text::npos; comma = text.find(',')) {
    pieces.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  pieces.push_back(text);
  return pieces;
}

/// The value of a key in a list; null: the list does not have the key.
[[nodiscard]] std::optional<Text> find_value(std::span<const Text> pieces, Text key) {
  const auto piece = std::ranges::find(pieces, key, key_of);
  return piece == pieces.end() ? std::nullopt : std::optional(value_of(*piece));
}

[[nodiscard]] bool is_called(const Key& key, Text word) {
  return key.key == word || (key.old == word && !word.empty());
}

[[nodiscard]] std::string quoted(Text text) {
  return "'" + base::printable(text) + "'";
}

[[nodiscard]] bool is_first_of(const KindRow& row, Text card) {
  if (row.prefix.empty()) {
    return card.find_first_of("0123456789abcdefABCDEF") == 0 && card.find(':') != Text::npos;
  }
  return row.prefix == kSwitched ? card == kSwitched : card.starts_with(row.prefix);
}

/// The names that can be given in a place, as "emu:loop or emu:NAME, shm:FABRIC".
[[nodiscard]] std::string spelled_kinds(Place place) {
  std::string list;
  for (const KindRow& row : kinds()) {
    if ((row.bit & kinds_at(place)) != 0) {
      list.append(list.empty() ? "" : ", ").append(row.spelled);
    }
  }
  return list;
}

/// The name of a kind before the word "card".
[[nodiscard]] std::string phrase_of(const KindRow& row) {
  return row.prefix.empty()             ? "a PCI"
         : row.prefix.starts_with(kEmu) ? "an emulated"
                                        : "a " + std::string(row.prefix);
}

/// Why a kind of card is of no use in a place, and what is.
[[nodiscard]] std::string not_here(Place place, const KindRow& row) {
  const std::string kind = phrase_of(row) + " card ";
  switch (place) {
    case Place::kCardsim:
      return kind + "cannot be made by rio-cardsim: take one of " + spelled_kinds(place) +
             "; two --card are wired to each other, and --fabric FILE plugs cards into switches";
    case Place::kDevice:
      return kind + "is no virtual device: take one of " + spelled_kinds(place) +
             "; EAL takes a PCI card by -a ADDRESS, also a card of rio-cardsim inside of a guest";
    default:
      return kind +
             "is made by rio-cardsim --card: open one that listens as sim:SOCKET, and one "
             "of a guest inside of the guest, by its PCI address";
  }
}

/// A text that is being parsed. Functions return false with the reason in error().
class Parser {
 public:
  Parser(Place place, std::span<const OwnKey> own) : place_(place), own_(own) {
    name_.model.queue_pairs = place == Place::kDevice ? kDeviceQueuePairs : 1;
  }

  [[nodiscard]] bool parse(std::span<const Text> pieces) {
    if (place_ == Place::kPciDevice) {
      name_.kind = Pci{};
    } else if (place_ == Place::kDevice) {
      const std::optional<Text> wire = find_value(pieces, kWireKey);
      if (std::optional<Text> none; wire.has_value() && !take_kind(*wire, &none)) {
        return false;
      }
    } else {
      std::optional<Text> behind_prefix;
      if (!take_kind(pieces.front(), &behind_prefix) ||
          (behind_prefix.has_value() && !take_key(*behind_prefix))) {
        return false;
      }
      pieces = pieces.subspan(1);
    }
    return std::ranges::all_of(pieces, [this](Text piece) { return take_key(piece); }) &&
           fits_together();
  }
  [[nodiscard]] CardName& name() { return name_; }
  [[nodiscard]] std::string& error() { return error_; }

 private:
  [[nodiscard]] bool fail(std::string why) {
    error_ = std::move(why);
    return false;
  }
  [[nodiscard]] bool bad_value(Text value, Text key, const std::string& allowed) {
    return fail("bad value " + quoted(value) + " for argument " + quoted(key) + ": allowed is " +
                allowed);
  }
  [[nodiscard]] Kinds kinds_of(const Key& key) const {
    return is_dpdk(place_) ? key.dpdk : key.kinds;
  }
  /// Whether cards of this kind have the key in this place.
  [[nodiscard]] bool has(const Key& key) const {
    return (kinds_of(key) >> name_.kind.index() & 1) != 0;
  }

  [[nodiscard]] bool note(Text key) {
    if (name_.has(key)) {
      return fail("argument " + quoted(key) + " is given twice: leave one out");
    }
    name_.given.emplace_back(key);
    return true;
  }

  /// @param keys set if the kind has its first key at once behind the prefix.
  [[nodiscard]] bool take_kind(Text card, std::optional<Text>* keys) {
    const auto row = std::ranges::find_if(
        kinds(), [card](const KindRow& one) { return is_first_of(one, card); });
    const bool is_device = place_ == Place::kDevice;
    if (row == kinds().end() && is_device) {  // as wires were once named, without "emu:"
      const KindRow* const cable = &row_of(Kind{});
      return cable->take(card, &name_) ||
             bad_value(card, kWireKey,
                       std::string(cable->allowed) + ", or one of " + spelled_kinds(place_));
    }
    if (row == kinds().end()) {
      return fail("no such card: write " + spelled_kinds(place_));
    }
    if ((row->bit & kinds_at(place_)) == 0) {
      return fail(not_here(place_, *row));
    }
    const Text rest = card.substr(row->prefix.size());
    if (row->allowed == nullptr) {
      *keys = rest;
    }
    return row->take(rest, &name_) ||
           bad_value(
               card, is_device ? kWireKey : "card",
               (row->prefix.empty() ? "" : std::string(row->prefix) + " and ") + row->allowed);
  }

  [[nodiscard]] bool unknown(Text word) {
    std::string list;
    const auto add = [&list](Text key) { list.append(list.empty() ? "" : ", ").append(key); };
    for (const OwnKey& key : own_) {
      add(key.key);
    }
    if (place_ == Place::kDevice) {
      add(kWireKey);
    }
    Kinds others = 0;
    for (const Key& key : keys()) {
      if (has(key)) {
        add(key.key);
      }
      others |= is_called(key, word) ? kinds_of(key) : 0;
    }
    return fail(
        "no argument " + quoted(word) + " for " + phrase_of(row_of(name_.kind)) +
        " card: take one of " + list +
        (others == 0 ? "" : " (" + quoted(word) + " is for cards of " + list_kinds(others) + ")"));
  }

  [[nodiscard]] bool take_key(Text piece) {
    const Text word = key_of(piece);
    const Text value = value_of(piece);
    if (piece.empty() && is_dpdk(place_)) {
      return true;
    }
    if (word == kWireKey && place_ == Place::kDevice) {
      return note(word);  // the value was taken first of all
    }
    for (const OwnKey& key : own_) {
      if (key.key == word) {
        return note(word) && (key.take(value) || bad_value(value, word, key.allowed));
      }
    }
    for (const Key& key : keys()) {
      if (has(key) && is_called(key, word)) {
        return note(key.key) && (key.take(value, &name_) || bad_value(value, word, key.allowed));
      }
    }
    return unknown(word);
  }

  [[nodiscard]] bool fits_together() {
    for (const Key& key : keys()) {
      if (has(key) && key.fallback == nullptr && !name_.has(key.key)) {
        return fail("argument " + quoted(key.key) + " is missing for " +
                    phrase_of(row_of(name_.kind)) + " card: give " + std::string(key.key) + "=, " +
                    key.allowed);
      }
    }
    if (std::holds_alternative<Shm>(name_.kind) &&
        (name_.has("board") ? !name_.has("qps") || !name_.has("qp") : name_.has("qp"))) {
      return fail(
          "'board', 'qps' and 'qp' belong together: a queue pair of a board is "
          "shm:FABRIC,board=NAME,qps=COUNT,qp=NUMBER; give all three, or no 'qp'");
    }
    if (!std::holds_alternative<Udp>(name_.kind)) {
      return true;
    }
    if (name_.has("members") && (name_.has("bind") || name_.has("port"))) {
      return fail("a 'members' file says what to bind to: leave out 'bind' and 'port'");
    }
    return name_.has("members") == (name_.id != 0) ||
           fail(
               "'id' and 'members' belong together: the file says where each destID is. Without "
               "both, members find each other by their addresses");
  }

  Place place_;
  std::span<const OwnKey> own_;
  CardName name_;
  std::string error_;
};

}  // namespace

int parse(Place place, std::string_view text, std::span<const OwnKey> own, CardName* out,
          std::string* error) {
  return parse(place, split(text), own, out, error);
}

int parse(Place place, std::span<const std::string_view> pieces, std::span<const OwnKey> own,
          CardName* out, std::string* error) {
  Parser parser(place, own);
  if (!parser.parse(pieces)) {
    *error = std::move(parser.error());
    return -EINVAL;
  }
  *out = std::move(parser.name());
  return 0;
}

std::string wire_of(std::string_view args) {
  const std::vector<Text> pieces = split(args);
  const Text wire = find_value(pieces, kWireKey).value_or("loop");
  if (wire == kSwitched) {
    return std::string(wire) + "/" + std::string(find_value(pieces, "at").value_or(""));
  }
  return std::string(wire.starts_with(kEmu) ? wire.substr(kEmu.size()) : wire);
}

std::string cardsim_help() {
  constexpr size_t kColumn = 12;
  constexpr size_t kWidth = 86;  // rio-cardsim prints it behind a margin
  const Kinds made = kinds_at(Place::kCardsim);
  std::string help = "KIND:KEY=VALUE,...\n";
  for (const Key& key : keys()) {
    if ((key.kinds & made) != 0) {
      std::string line = "  " + std::string(key.key) + "=";
      line.append(kColumn - key.key.size(), ' ').append(key.allowed);
      line.append(key.fallback == nullptr ? "" : " (" + std::string(key.fallback) + ")");
      const std::string made_by = list_kinds(key.kinds & made);
      const bool fits = line.size() + 2 + made_by.size() <= kWidth;
      line.append(fits ? "; " : ";\n" + std::string(kColumn + 3, ' '));
      help.append(line).append(made_by).append("\n");
    }
  }
  return help;
}

}  // namespace rio::name
