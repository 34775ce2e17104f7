#include "pmd/api/card_name.hpp"

#include <cerrno>
#include <charconv>
#include <set>
#include <span>
#include <string_view>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/emu/wire_name.hpp"

namespace rio {
namespace {

using base::log_error;
using pmd::is_fabric_name;
using pmd::is_wire_name;
using pmd::kWireNameMax;

constexpr std::string_view kEmuPrefix = "emu:";
constexpr std::string_view kFabric = "fabric";
constexpr std::string_view kSimPrefix = "sim:";
constexpr std::string_view kShmPrefix = "shm:";
constexpr std::string_view kUdpPrefix = "udp:";
constexpr std::string_view kRelayPrefix = "relay:";
constexpr size_t kBoardNameMax = 31;
constexpr size_t kSocketPathMax = 107;
constexpr uint32_t kRelayBoards = 64;

template <typename Number>
[[nodiscard]] bool number(std::string_view text, Number first, Number last, Number* out) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || at != end || !(value >= first && value <= last)) {
    return false;
  }
  *out = value;
  return true;
}

[[nodiscard]] bool flag(std::string_view text, bool* out) {
  *out = text == "1";
  return text == "0" || text == "1";
}

[[nodiscard]] bool seed_and_rate(std::string_view text, uint64_t* seed, double* rate) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos &&
         number<uint64_t>(text.substr(0, colon), 0, UINT64_MAX, seed) &&
         number(text.substr(colon + 1), 0.0, 1.0, rate);
}

[[nodiscard]] bool is_board_name(std::string_view text) {
  return pmd::is_name(text, kBoardNameMax, "_-");
}

/// One option of a name. These tables are the only place where options are written down.
struct Option {
  std::string_view key;
  const char* allowed;
  bool (*parse)(std::string_view value, CardName* out);
};

constexpr Option kQps = {"qps", "1 to 31", [](std::string_view v, CardName* n) {
                           return number<uint32_t>(v, 1, regs::kMaxQps, &n->emu.queue_pairs);
                         }};
constexpr Option kStepping = {"stepping", "inline or thread", [](std::string_view v, CardName* n) {
                                n->emu.stepping =
                                    v == "thread" ? pmd::Stepping::kThread : pmd::Stepping::kInline;
                                return v == "thread" || v == "inline";
                              }};
constexpr Option kExact = {"exact", "0 or 1",
                           [](std::string_view v, CardName* n) { return flag(v, &n->emu.exact); }};
constexpr Option kQuirks = {
    "quirks", "0 or 1", [](std::string_view v, CardName* n) { return flag(v, &n->emu.quirks); }};
constexpr const char* kSeedAndRate = "SEED:RATE, a 64-bit number and 0.0 to 1.0";
constexpr Option kFaults = {"faults", kSeedAndRate, [](std::string_view v, CardName* n) {
                              return seed_and_rate(v, &n->emu.fault_seed, &n->emu.fault_rate);
                            }};
constexpr Option kPcie = {"pcie", "a 64-bit seed, 0 for off", [](std::string_view v, CardName* n) {
                            return number<uint64_t>(v, 0, UINT64_MAX, &n->emu.pcie_seed);
                          }};

constexpr Option kEmuOptions[] = {
    kQps,
    kStepping,
    kExact,
    kQuirks,
    kFaults,
    kPcie,
    {"topology", "a topology file",
     [](std::string_view v, CardName* n) {
       n->emu.topology = v;
       return !v.empty();
     }},
    {"at", "the name of an endpoint of the topology file",
     [](std::string_view v, CardName* n) {
       n->emu.at = v;
       return !v.empty();
     }},
};

constexpr Option kId = {
    "id",
    "the first destID of the card, 1 to 65535 (4294967294 if it is opened with 32 bits), or 0 for "
    "one that is given to it",
    [](std::string_view v, CardName* n) {
      return number<uint32_t>(v, 0, 0xFFFFFFFEu, &n->emu.id);
    }};

constexpr Option kRelayOptions[] = {
    kQps,
    kStepping,
    kExact,
    kQuirks,
    kFaults,
    kPcie,
    kId,
    {"board", "the number of a board, 0 to 63",
     [](std::string_view v, CardName* n) {
       return number<uint32_t>(v, 0, kRelayBoards - 1, &n->emu.relay_board);
     }},
};

constexpr Option kShmOptions[] = {
    kQps,
    kStepping,
    kExact,
    kQuirks,
    kFaults,
    kPcie,
    kId,
    {"pull", "0 or 1", [](std::string_view v, CardName* n) { return flag(v, &n->emu.pull); }},
    {"board", "the name of a board, 1 to 31 letters, digits, '_' or '-'",
     [](std::string_view v, CardName* n) {
       n->emu.board = v;
       return is_board_name(v);
     }},
    {"qp", "the queue pair of the board that this process has, 0 to 30",
     [](std::string_view v, CardName* n) {
       return number<uint32_t>(v, 0, regs::kMaxQps - 1, &n->emu.board_pair);
     }},
};

constexpr Option kUdpOptions[] = {
    kQps,
    kStepping,
    kExact,
    kQuirks,
    kFaults,
    kPcie,
    kId,
    {"members", "a file with lines DESTID HOST:PORT",
     [](std::string_view v, CardName* n) {
       n->emu.members = v;
       return !v.empty();
     }},
    {"bind", "an IP address of this machine, or the name of an interface",
     [](std::string_view v, CardName* n) {
       n->emu.bind = v;
       return !v.empty();
     }},
    {"port", "0 to 65535, 0 for any",
     [](std::string_view v, CardName* n) {
       return number<uint16_t>(v, 0, UINT16_MAX, &n->emu.port);
     }},
    {"loss", kSeedAndRate,
     [](std::string_view v, CardName* n) {
       return seed_and_rate(v, &n->emu.loss_seed, &n->emu.loss_rate);
     }},
    {"patience", "seconds, 1 to 3600",
     [](std::string_view v, CardName* n) {
       return number<uint32_t>(v, 1, 3600, &n->emu.patience_s);
     }},
};

constexpr Option kSimOptions[] = {
    {"wait", "milliseconds to wait for rio-cardsim, 0 to 60000",
     [](std::string_view v, CardName* n) {
       return number<uint32_t>(v, 0, 60000, &n->sim.wait_ms);
     }},
};

constexpr Option kPciOptions[] = {
    {"reset", "0 or 1", [](std::string_view v, CardName* n) { return flag(v, &n->options.reset); }},
    {"iova", "allocated or virtual",
     [](std::string_view v, CardName* n) {
       n->options.iova =
           v == "virtual" ? pmd::vfio::IovaMode::kVirtual : pmd::vfio::IovaMode::kAllocated;
       return v == "virtual" || v == "allocated";
     }},
};

[[nodiscard]] int parse_option(const std::string& name, std::string_view text,
                               std::span<const Option> options, std::set<std::string_view>* seen,
                               CardName* out) {
  const size_t equals = text.find('=');
  const std::string key(text.substr(0, equals));
  std::string known;
  for (const Option& option : options) {
    known += (known.empty() ? "" : ", ") + std::string(option.key);
    if (option.key != key) {
      continue;
    }
    if (!seen->insert(option.key).second) {
      base::log_error("%s: option %s is given twice; leave one out", name.c_str(), key.c_str());
      return -EINVAL;
    }
    const std::string value(equals == std::string_view::npos ? "" : text.substr(equals + 1));
    if (!option.parse(value, out)) {
      base::log_error("%s: option %s=%s; write %s=, then %s", name.c_str(), key.c_str(),
                      value.c_str(), key.c_str(), option.allowed);
      return -EINVAL;
    }
    return 0;
  }
  base::log_error("%s: no option '%s' for such a card; there are: %s", name.c_str(), key.c_str(),
                  known.c_str());
  return -EINVAL;
}

/// The name without its options: which card. @param options those that it may have.
[[nodiscard]] int parse_card(const std::string& text, const std::string& first, CardName* out,
                             std::span<const Option>* options) {
  CardName& name = *out;
  *options = kPciOptions;
  name.emulated = first.starts_with(kEmuPrefix);
  if (name.emulated) {
    *options = kEmuOptions;
    name.emu.wire = first.substr(kEmuPrefix.size());
    if (!is_wire_name(name.emu.wire)) {
      base::log_error(
          "\"%s\": an emulated card is emu:loop, or emu:NAME with 1 to %zu letters, digits, '_', "
          "'.' or '-', which two cards of this process share",
          text.c_str(), kWireNameMax);
      return -EINVAL;
    }
    return 0;
  }
  if (first.starts_with(kShmPrefix)) {
    *options = kShmOptions;
    name.emulated = true;
    name.emu.fabric = first.substr(kShmPrefix.size());
    if (!is_fabric_name(name.emu.fabric)) {
      base::log_error(
          "\"%s\": a card in a fabric of processes is shm:NAME with 1 to %zu letters, digits, '_', "
          "'.' or '-', no '.' first, which the processes share",
          text.c_str(), kWireNameMax);
      return -EINVAL;
    }
    return 0;
  }
  if (first.starts_with(kUdpPrefix)) {
    *options = kUdpOptions;
    name.emulated = true;
    name.emu.udp_fabric = first.substr(kUdpPrefix.size());
    if (!is_wire_name(name.emu.udp_fabric)) {
      base::log_error(
          "\"%s\": a card in a fabric of machines is udp:NAME with 1 to %zu letters, digits, '_', "
          "'.' or '-', which the machines share",
          text.c_str(), kWireNameMax);
      return -EINVAL;
    }
    return 0;
  }
  if (first.starts_with(kRelayPrefix)) {
    *options = kRelayOptions;
    name.emulated = true;
    name.emu.relay = first.substr(kRelayPrefix.size());
    if (!is_fabric_name(name.emu.relay)) {
      base::log_error(
          "\"%s\": a card behind a relay is relay:NAME with 1 to %zu letters, digits, '_', '.' or "
          "'-', no '.' first, as rio-relay was given",
          text.c_str(), kWireNameMax);
      return -EINVAL;
    }
    return 0;
  }
  if (first.starts_with(kSimPrefix)) {
    *options = kSimOptions;
    name.sim.socket = first.substr(kSimPrefix.size());
    if (name.sim.socket.empty() || name.sim.socket.size() > kSocketPathMax) {
      base::log_error(
          "\"%s\": a card of rio-cardsim is sim:SOCKET, the path of 1 to %zu characters that "
          "rio-cardsim --card listen:socket= was given",
          text.c_str(), kSocketPathMax);
      return -EINVAL;
    }
    return 0;
  }
  if (first.find_first_of("0123456789abcdefABCDEF") != 0 || first.find(':') == std::string::npos) {
    base::log_error(
        "\"%s\" is no card: write emu:loop, emu:NAME, shm:FABRIC, udp:FABRIC, relay:NAME, "
        "sim:SOCKET, or a PCI "
        "address as "
        "lspci -D "
        "does, for example 0000:03:00.0",
        text.c_str());
    return -EINVAL;
  }
  return pmd::vfio::parse_address(first, &name.pci_address);
}

}  // namespace

int parse_card_name(const std::string& text, CardName* out) {
  CardName name;
  std::string_view rest = text;
  const std::string first(rest.substr(0, rest.find(',')));
  std::span<const Option> options;
  if (const int rc = parse_card(text, first, &name, &options); rc != 0) {
    return rc;
  }
  std::set<std::string_view> seen;
  rest.remove_prefix(first.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view option = rest.substr(0, rest.find(','));
    if (const int rc = parse_option(text, option, options, &seen, &name); rc != 0) {
      return rc;
    }
    rest.remove_prefix(option.size());
  }
  if (!name.emu.relay.empty()) {
    *out = name;
    return 0;
  }
  if (seen.contains("board") ? !seen.contains("qps") || !seen.contains("qp")
                             : seen.contains("qp")) {
    base::log_error(
        "\"%s\": a queue pair of a board is shm:FABRIC,board=NAME,qps=COUNT,qp=NUMBER; give all "
        "three options, or no qp",
        text.c_str());
    return -EINVAL;
  }
  const bool in_fabric = name.emulated && name.emu.wire == kFabric;
  if (in_fabric != seen.contains("topology") || in_fabric != seen.contains("at")) {
    base::log_error(
        "\"%s\": a card in a fabric is emu:fabric,topology=FILE,at=ENDPOINT; give both options, "
        "and "
        "to such a card only",
        text.c_str());
    return -EINVAL;
  }
  if (seen.contains("members") && (seen.contains("bind") || seen.contains("port"))) {
    base::log_error("\"%s\": a members file says what to bind to; leave out bind and port",
                    text.c_str());
    return -EINVAL;
  }
  if (!name.emu.udp_fabric.empty() && seen.contains("members") != (name.emu.id != 0)) {
    base::log_error(
        "\"%s\": id= and members= belong together: the file says where each destID is. Without "
        "both, members find each other by their addresses",
        text.c_str());
    return -EINVAL;
  }
  *out = name;
  return 0;
}

int open_bus(const std::string& name, std::unique_ptr<pmd::Bus>* out) {
  CardName parsed;
  if (const int rc = parse_card_name(name, &parsed); rc != 0) {
    return rc;
  }
  if (parsed.emulated) {
    std::unique_ptr<pmd::EmuBus> bus;
    if (const int rc = pmd::EmuBus::create(parsed.emu, nullptr, &bus); rc != 0) {
      return rc;
    }
    *out = std::move(bus);
    return 0;
  }
  if (!parsed.sim.socket.empty()) {
    std::unique_ptr<pmd::SimBus> bus;
    if (const int rc = pmd::SimBus::open(parsed.sim, &bus); rc != 0) {
      return rc;
    }
    *out = std::move(bus);
    return 0;
  }
  std::unique_ptr<pmd::vfio::VfioBus> bus;
  if (const int rc = pmd::vfio::VfioBus::open(parsed.pci_address, parsed.options, {},
                                              pmd::vfio::real_kernel(), &bus);
      rc != 0) {
    return rc;
  }
  *out = std::move(bus);
  return 0;
}

}  // namespace rio
