#include "fpga/name/keys.hpp"

#include <algorithm>
#include <charconv>

#include "fpga/name/pci_address.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::name {
namespace {

using Text = std::string_view;

constexpr size_t kNameMax = 63;

template <typename T, typename... Ts>
consteval Kinds bit_in(const std::variant<Ts...>* /*all*/) {
  uint32_t at = 0;
  bool found = false;
  ((found = found || std::is_same_v<T, Ts>, at += found ? 0 : 1), ...);
  return 1u << at;
}
template <typename... Ts>
constexpr Kinds kBits = (bit_in<Ts>(static_cast<const Kind*>(nullptr)) | ...);

constexpr Kinds kFabrics = kBits<Shm, Udp, Relay>;
constexpr Kinds kEmulated = kFabrics | kBits<Cable, Switched>;
constexpr Kinds kGuests = kBits<Plain, Doorbell>;
constexpr Kinds kServed = kGuests | kBits<Listen>;

/// 1 to `longest` letters, digits, and the characters of `also`.
[[nodiscard]] bool is_name(Text text, size_t longest, Text also) {
  constexpr Text kLettersAndDigits =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [=](char c) {
    return kLettersAndDigits.find(c) != Text::npos || also.find(c) != Text::npos;
  });
}
[[nodiscard]] bool is_wire_name(Text text) {
  return is_name(text, kNameMax, "_.-");
}
/// Of a fabric on one machine: it is the name of a folder.
[[nodiscard]] bool is_folder_name(Text text) {
  return is_wire_name(text) && text.front() != '.';
}
[[nodiscard]] bool is_board_name(Text text) {
  return is_name(text, 31, "_-");
}
[[nodiscard]] bool is_path(Text text) {
  return !text.empty() && text.find('\0') == Text::npos;
}
/// For sockaddr_un, with its 0.
[[nodiscard]] bool is_socket_path(Text text) {
  return is_path(text) && text.size() <= 107;
}

template <typename C, typename T>
C class_of(T C::*);

/// The member of a parsed name, or of one of its parts.
template <auto kMember>
[[nodiscard]] auto& field(CardName* name) {
  using Part = decltype(class_of(kMember));
  if constexpr (std::is_same_v<Part, CardName>) {
    return name->*kMember;
  } else if constexpr (std::is_same_v<Part, Model>) {
    return name->model.*kMember;
  } else if constexpr (std::is_same_v<Part, Guest>) {
    Plain* const plain = std::get_if<Plain>(&name->kind);
    return (plain != nullptr ? plain->guest : std::get<Doorbell>(name->kind).guest).*kMember;
  } else {
    return std::get<Part>(name->kind).*kMember;
  }
}

// How a key, or what follows a prefix, is taken.
using Take = bool (*)(Text text, CardName* name);

template <auto kMember, uint64_t kLeast = 0, uint64_t kMost = UINT64_MAX>
constexpr Take kNumber = [](Text text, CardName* name) {
  return take_number(text, kLeast, kMost, &field<kMember>(name));
};

template <auto kMember>
constexpr Take kFlag = [](Text text, CardName* name) {
  field<kMember>(name) = text == "1";
  return text == "0" || text == "1";
};

template <auto kMember, bool (*kIsAllowed)(Text)>
constexpr Take kText = [](Text text, CardName* name) {
  field<kMember>(name) = text;
  return kIsAllowed(text);
};

template <auto kSeed, auto kRate>
constexpr Take kSeedAndRate = [](Text text, CardName* name) {
  const size_t colon = text.find(':');
  if (colon == Text::npos ||
      !take_number(text.substr(0, colon), 0, UINT64_MAX, &field<kSeed>(name))) {
    return false;
  }
  double& rate = field<kRate>(name);
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + colon + 1, end, rate);
  return error == std::errc{} && at == end && rate >= 0.0 && rate <= 1.0;
};

constexpr Take kStepping = [](Text text, CardName* name) {
  name->model.stepping = text == "thread" ? Stepping::kThread : Stepping::kInline;
  return text == "thread" || text == "inline";
};

constexpr Take kIova = [](Text text, CardName* name) {
  field<&Pci::iova_is_va>(name) = text == "virtual";
  return text == "virtual" || text == "allocated";
};

constexpr Take kFunction = [](Text text, CardName* name) {
  PciAddress at;
  if (!read_pci_address(text, &at) || at.domain != 0) {
    return false;
  }
  field<&Guest::bdf>(name) = static_cast<uint16_t>(at.bus << 8 | at.device << 3 | at.function);
  return true;
};

constexpr Take kListenAt = [](Text text, CardName* name) {
  return std::holds_alternative<Listen>(name->kind)
             ? kText<&Listen::socket, is_socket_path>(text, name)
             : kText<&Doorbell::socket, is_socket_path>(text, name);
};

constexpr Take kAddress = [](Text text, CardName* name) {
  PciAddress address;
  const bool is_address = text.find(':') != Text::npos && read_pci_address(text, &address);
  name->kind = Pci{address.text()};
  return is_address;
};

/// A kind whose first member is its name.
template <typename T, bool (*kIsAllowed)(Text)>
constexpr Take kNamed = [](Text text, CardName* name) {
  name->kind = T{std::string(text)};
  return kIsAllowed(text);
};

/// A kind without a name.
template <typename T>
constexpr Take kNameless = [](Text /*keys*/, CardName* name) {
  name->kind = T{};
  return true;
};

constexpr uint32_t bit(Place place) {
  return 1u << static_cast<uint32_t>(place);
}
constexpr uint32_t kAnyProgram = bit(Place::kProgram) | bit(Place::kDevice);

constexpr const char* kWireNames =
    "loop, or a name of 1 to 63 letters, digits, '_', '.' or '-' that two cards share";
constexpr const char* kFabricNames =
    "a name of 1 to 63 letters, digits, '_', '.' or '-', no '.' first";
constexpr const char* kUdpNames = "a name of 1 to 63 letters, digits, '_', '.' or '-'";

constexpr KindRow kKinds[] = {
    {kBits<Switched>, "emu:fabric", "emu:fabric,topology=FILE,at=ENDPOINT", "an emulated",
     "nothing", kAnyProgram, kNameless<Switched>},
    {kBits<Cable>, "emu:", "emu:loop or emu:NAME", "an emulated", kWireNames, kAnyProgram,
     kNamed<Cable, is_wire_name>},
    {kBits<Shm>, "shm:", "shm:FABRIC", "an shm:", kFabricNames, kAnyProgram,
     kNamed<Shm, is_folder_name>},
    {kBits<Udp>, "udp:", "udp:FABRIC", "a udp:", kUdpNames, kAnyProgram, kNamed<Udp, is_wire_name>},
    {kBits<Relay>, "relay:", "relay:NAME", "a relay:", kFabricNames, kAnyProgram,
     kNamed<Relay, is_folder_name>},
    {kBits<Sim>, "sim:", "sim:SOCKET", "a sim:",
     "the path, of at most 107 characters, that rio-cardsim --card listen:socket= was given",
     bit(Place::kProgram), kNamed<Sim, is_socket_path>},
    {kBits<Plain>, "plain:", "plain:bar=FILE,ram=FILE", "a plain:", nullptr, bit(Place::kCardsim),
     kNameless<Plain>},
    {kBits<Doorbell>, "doorbell:", "doorbell:socket=PATH,ram=FILE", "a doorbell:", nullptr,
     bit(Place::kCardsim), kNameless<Doorbell>},
    {kBits<Listen>, "listen:", "listen:socket=PATH", "a listen:", nullptr, bit(Place::kCardsim),
     kNameless<Listen>},
    {kBits<Pci>, "", "0000:03:00.0 (as lspci -D writes it)", "a PCI",
     "a PCI address as lspci -D writes it, for example 0000:03:00.0",
     bit(Place::kProgram) | bit(Place::kPciDevice), kAddress},
};

constexpr const char* kSeedRate = "SEED:RATE, a 64-bit number and 0.0 to 1.0";

constexpr Key kKeys[] = {
    {"qps", kEmulated | kServed, kEmulated, 0, "1 to 31", "1",
     kNumber<&Model::queue_pairs, 1, regs::kMaxQps>},
    {"id", kFabrics, kEmulated | kBits<Pci>, 0,
     "0 to 4294967294; above 65535 only where destIDs have 32 bits", "0, one that is given to it",
     kNumber<&CardName::id, 0, 0xFFFFFFFE>, "destid"},
    {"stepping", kEmulated, kEmulated, 0, "inline or thread", "inline", kStepping},
    {"exact", kEmulated | kServed, kEmulated, 0, "0 or 1", "0", kFlag<&Model::exact>},
    {"quirks", kEmulated | kServed, kEmulated, 0, "0 or 1", "1", kFlag<&Model::quirks>},
    {"faults", kEmulated | kServed, kEmulated, 0, kSeedRate, "none",
     kSeedAndRate<&Model::fault_seed, &Model::fault_rate>},
    {"pcie", kEmulated | kServed, kEmulated, 0, "a 64-bit seed, 0 for off", "0",
     kNumber<&Model::pcie_seed>},
    {"topology", kBits<Switched>, kBits<Switched>, kBits<Switched>, "a topology file", nullptr,
     kText<&Switched::topology, is_path>},
    {"at", kBits<Switched>, kBits<Switched>, kBits<Switched>,
     "the name of an endpoint of the topology file", nullptr, kText<&Switched::at, is_path>},
    {"board", kBits<Shm>, 0, 0, "a name of 1 to 31 letters, digits, '_' or '-'", "none",
     kText<&Shm::board, is_board_name>},
    {"qp", kBits<Shm>, 0, 0, "0 to 30", "none", kNumber<&Shm::queue_pair, 0, regs::kMaxQps - 1>},
    {"pull", kBits<Shm>, kBits<Shm>, 0, "0 or 1", "1", kFlag<&Shm::pull>},
    {"members", kBits<Udp>, kBits<Udp>, 0, "a file with lines DESTID HOST:PORT", "none",
     kText<&Udp::members, is_path>},
    {"bind", kBits<Udp>, kBits<Udp>, 0,
     "an IP address of this machine, or the name of an interface",
     "the first that others can reach", kText<&Udp::bind, is_path>},
    {"port", kBits<Udp>, kBits<Udp>, 0, "0 to 65535, 0 for any", "0",
     kNumber<&Udp::port, 0, UINT16_MAX>},
    {"patience", kBits<Udp>, kBits<Udp>, 0, "seconds, 1 to 3600", "30",
     kNumber<&Udp::patience_s, 1, 3600>},
    {"loss", kBits<Udp>, kBits<Udp>, 0, kSeedRate, "none",
     kSeedAndRate<&Udp::loss_seed, &Udp::loss_rate>},
    {"board", kBits<Relay>, kBits<Relay>, 0, "the number of a board, 0 to 63", "the emptiest",
     kNumber<&Relay::board, 0, 63>},
    {"wait", kBits<Sim>, 0, 0, "milliseconds to wait for rio-cardsim, 0 to 60000", "1000",
     kNumber<&Sim::wait_ms, 0, 60000>},
    {"reset", kBits<Pci>, 0, 0, "0 or 1", "1", kFlag<&Pci::reset>},
    {"iova", kBits<Pci>, 0, 0, "allocated or virtual", "allocated", kIova},
    {"bar", kBits<Plain>, 0, kBits<Plain>,
     "a file, made by rio-cardsim; QEMU's mem-path of the ivshmem", nullptr,
     kText<&Plain::bar, is_path>},
    {"socket", kBits<Doorbell, Listen>, 0, kBits<Doorbell, Listen>,
     "a path of at most 107 characters where rio-cardsim listens", nullptr, kListenAt},
    {"ram", kGuests, 0, kGuests, "the file of the guest's RAM, share=on; it may appear later",
     nullptr, kText<&Guest::ram, is_path>},
    {"monitor", kGuests, 0, 0,
     "QEMU's monitor socket, at most 107 characters; with it the guest's IOMMU is obeyed", "none",
     kText<&Guest::monitor, is_socket_path>},
    {"devfn", kGuests, 0, 0, "[BUS:]DEVICE.FUNCTION of the card in the guest", "04.0", kFunction},
    {"vectors", kBits<Doorbell>, 0, 0, "1 to 64, the same as in QEMU's vectors=", "2",
     kNumber<&Doorbell::vectors, 1, 64>},
    {"name", kServed, 0, 0, "what messages and the report call the card", "its path",
     kText<&CardName::label, is_path>},
    {"at", kServed, 0, 0, "with --fabric: the endpoint where the card is plugged in", "none",
     kText<&CardName::at, is_path>},
};

}  // namespace

std::span<const KindRow> kinds() {
  return kKinds;
}

std::span<const Key> keys() {
  return kKeys;
}

const KindRow& row_of(const CardName& name) {
  const Kinds bit = 1u << name.kind.index();
  return *std::ranges::find(kKinds, bit, &KindRow::bit);
}

std::string list_kinds(Kinds set) {
  std::string list;
  for (const KindRow& row : kKinds) {
    if ((row.bit & set) != 0) {
      Text word = row.prefix.empty() ? "PCI" : row.prefix;
      word.remove_suffix(word.ends_with(':') ? 1 : 0);
      list.append(list.empty() ? "" : ", ").append(word);
    }
  }
  return list;
}

}  // namespace rio::name
