#include "fpga/cardsim/card_spec.hpp"

#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <set>

#include "fpga/cardsim/complain.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::cardsim {
namespace {

constexpr unsigned kPlainBit = 1u << static_cast<unsigned>(Kind::kPlain);
constexpr unsigned kDoorbellBit = 1u << static_cast<unsigned>(Kind::kDoorbell);
constexpr unsigned kListenBit = 1u << static_cast<unsigned>(Kind::kListen);
constexpr unsigned kGuestBits = kPlainBit | kDoorbellBit;
constexpr unsigned kAllBits = kGuestBits | kListenBit;

struct KindName {
  Kind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {
    {Kind::kPlain, "plain"}, {Kind::kDoorbell, "doorbell"}, {Kind::kListen, "listen"}};

template <typename Number>
[[nodiscard]] bool number(std::string_view text, Number first, Number last, Number* out,
                          int base = 10) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc{} || at != end || !(value >= first && value <= last)) {
    return false;
  }
  *out = value;
  return true;
}

[[nodiscard]] bool rate(std::string_view text, double* out) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || at != end || !(value >= 0.0 && value <= 1.0)) {
    return false;
  }
  *out = value;
  return true;
}

[[nodiscard]] bool flag(std::string_view text, bool* out) {
  *out = text == "1";
  return text == "0" || text == "1";
}

[[nodiscard]] bool seed_and_rate(std::string_view text, model::FaultConfig* out) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos &&
         number<uint64_t>(text.substr(0, colon), 0, UINT64_MAX, &out->seed) &&
         rate(text.substr(colon + 1), &out->rate);
}

[[nodiscard]] bool path(std::string_view text, std::string* out) {
  *out = text;
  return !text.empty() && text.find('\0') == std::string_view::npos;
}

[[nodiscard]] bool socket_path(std::string_view text, std::string* out) {
  return path(text, out) && text.size() < sizeof(sockaddr_un::sun_path);
}

/// Parses "[BB:]DD.F", hexadecimal as lspci writes it.
[[nodiscard]] bool pci_function(std::string_view text, uint16_t* out) {
  uint16_t bus = 0;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (!number<uint16_t>(text.substr(0, colon), 0, 0xFF, &bus, 16)) {
      return false;
    }
    text.remove_prefix(colon + 1);
  }
  const size_t dot = text.find('.');
  uint16_t device = 0;
  uint16_t function = 0;
  if (dot == std::string_view::npos ||
      !number<uint16_t>(text.substr(0, dot), 0, 0x1F, &device, 16) ||
      !number<uint16_t>(text.substr(dot + 1), 0, 7, &function, 16)) {
    return false;
  }
  *out = static_cast<uint16_t>(bus << 8 | device << 3 | function);
  return true;
}

[[nodiscard]] bool quirks(std::string_view text, model::Config* out) {
  bool on = false;
  if (!flag(text, &on)) {
    return false;
  }
  out->quirk_last_at_256 = out->quirk_last_full_256 = on;
  if (!on) {
    out->shared_addr_log2 = out->dedicated_addr_log2 = out->dedicated_size_log2 = 3;
  }
  return true;
}

/// A key of --card. This table is the only place that lists them.
struct Key {
  std::string_view key;
  unsigned kinds;   ///< kinds that accept it
  unsigned wanted;  ///< kinds that require it
  const char* allowed;
  bool (*parse)(std::string_view value, CardSpec* out);
};

constexpr Key kKeys[] = {
    {"bar", kPlainBit, kPlainBit, "a file, made by rio-cardsim; QEMU's mem-path of the ivshmem",
     [](std::string_view v, CardSpec* s) { return path(v, &s->bar); }},
    {"socket", kDoorbellBit | kListenBit, kDoorbellBit | kListenBit,
     "a path of at most 107 characters where rio-cardsim listens",
     [](std::string_view v, CardSpec* s) { return socket_path(v, &s->socket); }},
    {"ram", kGuestBits, kGuestBits, "the file of the guest's RAM, share=on; it may appear later",
     [](std::string_view v, CardSpec* s) { return path(v, &s->ram); }},
    {"monitor", kGuestBits, 0, "QEMU's monitor socket; with it the guest's IOMMU is obeyed",
     [](std::string_view v, CardSpec* s) { return socket_path(v, &s->monitor); }},
    {"devfn", kGuestBits, 0, "[BUS:]DEVICE.FUNCTION of the card in the guest (04.0)",
     [](std::string_view v, CardSpec* s) { return pci_function(v, &s->bdf); }},
    {"vectors", kDoorbellBit, 0, "1 to 64, equal to QEMU's vectors= (2)",
     [](std::string_view v, CardSpec* s) { return number<uint32_t>(v, 1, 64, &s->vectors); }},
    {"name", kAllBits, 0, "the card's name in messages and in the report",
     [](std::string_view v, CardSpec* s) { return path(v, &s->name); }},
    {"at", kAllBits, 0, "with --fabric: the endpoint where the card is plugged in",
     [](std::string_view v, CardSpec* s) { return path(v, &s->at); }},
    {"qps", kAllBits, 0, "queue pairs, 1 to 31 (1)",
     [](std::string_view v, CardSpec* s) {
       return number<uint32_t>(v, 1, regs::kMaxQps, &s->model.queue_pairs);
     }},
    {"exact", kAllBits, 0, "1: segment by segment (0)",
     [](std::string_view v, CardSpec* s) { return flag(v, &s->model.exact); }},
    {"quirks", kAllBits, 0, "0: without the two landing quirks (1)",
     [](std::string_view v, CardSpec* s) { return quirks(v, &s->model); }},
    {"faults", kAllBits, 0, "SEED:RATE, a 64-bit number and 0.0 to 1.0",
     [](std::string_view v, CardSpec* s) { return seed_and_rate(v, &s->model.faults); }},
    {"pcie", kAllBits, 0, "64-bit seed of the PCIe layer, 0 for off (0)",
     [](std::string_view v, CardSpec* s) {
       return number<uint64_t>(v, 0, UINT64_MAX, &s->model.pcie_seed);
     }},
};

[[nodiscard]] std::string keys_of(unsigned kind) {
  std::string keys;
  for (const Key& key : kKeys) {
    if ((key.kinds & kind) != 0) {
      keys += (keys.empty() ? "" : ", ") + std::string(key.key);
    }
  }
  return keys;
}

[[nodiscard]] int parse_key(const std::string& card, std::string_view text, unsigned kind,
                            std::set<std::string_view>* seen, CardSpec* out) {
  const size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  const std::string value(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  for (const Key& key : kKeys) {
    if (key.key != name || (key.kinds & kind) == 0) {
      continue;
    }
    if (!seen->insert(key.key).second) {
      complain("--card %s: %s is given twice; leave one out", card.c_str(), name.c_str());
      return -EINVAL;
    }
    if (!key.parse(value, out)) {
      complain("--card %s: %s=%s; write %s=, then %s", card.c_str(), name.c_str(), value.c_str(),
               name.c_str(), key.allowed);
      return -EINVAL;
    }
    return 0;
  }
  complain("--card %s: no key '%s' for such a card; those allowed: %s", card.c_str(), name.c_str(),
           keys_of(kind).c_str());
  return -EINVAL;
}

}  // namespace

const char* kind_name(Kind kind) {
  for (const KindName& known : kKinds) {
    if (known.kind == kind) {
      return known.name.data();
    }
  }
  return "";
}

int parse_card_spec(std::string_view text, CardSpec* out) {
  const std::string card(text);
  CardSpec spec;
  const std::string_view kind = text.substr(0, text.find(':'));
  bool known = false;
  for (const KindName& one : kKinds) {
    if (one.name == kind) {
      spec.kind = one.kind;
      known = true;
    }
  }
  if (!known || kind.size() == text.size()) {
    complain("--card %s: write plain:, doorbell: or listen:, then KEY=VALUE,...", card.c_str());
    return -EINVAL;
  }
  const unsigned bit = 1u << static_cast<unsigned>(spec.kind);
  std::set<std::string_view> seen;
  text.remove_prefix(kind.size());
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view key = text.substr(0, text.find(','));
    if (const int rc = parse_key(card, key, bit, &seen, &spec); rc != 0) {
      return rc;
    }
    text.remove_prefix(key.size());
  }
  for (const Key& key : kKeys) {
    if ((key.wanted & bit) != 0 && !seen.contains(key.key)) {
      complain("--card %s: %s= is missing: %s", card.c_str(), key.key.data(), key.allowed);
      return -EINVAL;
    }
  }
  if (spec.kind == Kind::kListen) {
    spec.vectors = spec.model.vectors;
  }
  if (spec.name.empty()) {
    spec.name = spec.kind == Kind::kPlain ? spec.bar : spec.socket;
  }
  *out = std::move(spec);
  return 0;
}

std::string card_spec_help() {
  std::string help = "KIND:KEY=VALUE,...\n";
  for (const KindName& kind : kKinds) {
    help += "  " + std::string(kind.name) + ": " + keys_of(1u << static_cast<unsigned>(kind.kind)) +
            "\n";
  }
  for (const Key& key : kKeys) {
    help += "  " + std::string(key.key) + "=" + std::string(10 - key.key.size(), ' ') +
            key.allowed + "\n";
  }
  return help;
}

}  // namespace rio::cardsim
