#include "fpga/name/keys.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "fpga/name/pci_address.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::name {
namespace {

using Text = std::string_view;

constexpr Kinds kCable = 1, kSwitched = 2, kShm = 4, kUdp = 8, kRelay = 16, kSim = 32, kPci = 64,
                kPlain = 128, kDoorbell = 256, kListen = 512;
constexpr Kinds kEmulated = kCable | kSwitched | kShm | kUdp | kRelay;
constexpr Kinds kGuests = kPlain | kDoorbell;
constexpr Kinds kServed = kGuests | kListen;
constexpr Kinds kModels = kEmulated | kServed;
static_assert(std::variant_size_v<Kind> == 10);
static_assert(std::is_same_v<std::variant_alternative_t<0, Kind>, Cable>);
static_assert(std::is_same_v<std::variant_alternative_t<6, Kind>, Pci>);
static_assert(std::is_same_v<std::variant_alternative_t<9, Kind>, Listen>);

[[nodiscard]] bool is_wire_name(Text text) {
  return base::is_name(text, 63, "_.-");
}
/// Of a fabric on one machine: it is the name of a folder.
[[nodiscard]] bool is_folder_name(Text text) {
  return is_wire_name(text) && text.front() != '.';
}
[[nodiscard]] bool is_board_name(Text text) {
  return base::is_name(text, 31, "_-");
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

template <auto kMember, uint64_t kLeast = 0, uint64_t kMost = UINT64_MAX>
constexpr Take kNumber = [](Text text, CardName* name) {
  return base::read_number(text, kLeast, kMost, &field<kMember>(name));
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
  return colon != Text::npos && base::read_number(text.substr(0, colon), &field<kSeed>(name)) &&
         base::read_fraction(text.substr(colon + 1), 0.0, 1.0, &field<kRate>(name));
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

constexpr const char* kWireNames =
    "loop, or a name of 1 to 63 letters, digits, '_', '.' or '-' that two cards share";
constexpr const char* kFabricNames =
    "a name of 1 to 63 letters, digits, '_', '.' or '-', no '.' first";
constexpr const char* kUdpNames = "a name of 1 to 63 letters, digits, '_', '.' or '-'";

constexpr KindRow kKinds[] = {
    {kSwitched, "emu:fabric", "emu:fabric,topology=FILE,at=ENDPOINT", "nothing",
     kNameless<Switched>},
    {kCable, "emu:", "emu:loop or emu:NAME", kWireNames, kNamed<Cable, is_wire_name>},
    {kShm, "shm:", "shm:FABRIC", kFabricNames, kNamed<Shm, is_folder_name>},
    {kUdp, "udp:", "udp:FABRIC", kUdpNames, kNamed<Udp, is_wire_name>},
    {kRelay, "relay:", "relay:NAME", kFabricNames, kNamed<Relay, is_folder_name>},
    {kSim, "sim:", "sim:SOCKET",
     "the path, of at most 107 characters, that rio-cardsim --card listen:socket= was given",
     kNamed<Sim, is_socket_path>},
    {kPlain, "plain:", "plain:bar=FILE,ram=FILE", nullptr, kNameless<Plain>},
    {kDoorbell, "doorbell:", "doorbell:socket=PATH,ram=FILE", nullptr, kNameless<Doorbell>},
    {kListen, "listen:", "listen:socket=PATH", nullptr, kNameless<Listen>},
    {kPci, "", "0000:03:00.0 (as lspci -D writes it)",
     "a PCI address as lspci -D writes it, for example 0000:03:00.0", kAddress},
};

constexpr const char* kListenAt = "a path of at most 107 characters where rio-cardsim listens";
constexpr const char* kSeedRate = "SEED:RATE, a 64-bit number and 0.0 to 1.0";

constexpr Key kKeys[] = {
    {"qps", kModels, "1 to 31", "1", kNumber<&Model::queue_pairs, 1, regs::kMaxQps>},
    {"id", kShm | kUdp | kRelay, "0 to 4294967294; above 65535 only where destIDs have 32 bits",
     "0, one that is given to it", kNumber<&CardName::id, 0, 0xFFFFFFFE>, "destid",
     kEmulated | kPci},
    {"stepping", kEmulated, "inline or thread", "inline", kStepping},
    {"exact", kModels, "0 or 1", "0", kFlag<&Model::exact>},
    {"quirks", kModels, "0 or 1", "1", kFlag<&Model::quirks>},
    {"faults", kModels, kSeedRate, "none", kSeedAndRate<&Model::fault_seed, &Model::fault_rate>},
    {"pcie", kModels, "a 64-bit seed, 0 for off", "0", kNumber<&Model::pcie_seed>},
    {"early", kModels, "0 or 1", "0", kFlag<&Model::early_status>},
    {"torn", kModels, "0 or 1", "0", kFlag<&Model::torn>},
    {"flights", kModels, "1 to 65535", "4096", kNumber<&Model::flights, 1, UINT16_MAX>},
    {"resting", kModels, "0 to 65535", "1024", kNumber<&Model::resting, 0, UINT16_MAX>},
    {"rx_contexts", kModels, "1 to 1023", "64", kNumber<&Model::rx_contexts, 1, 1023>},
    {"poisoned", kModels, "0 to 65535", "64", kNumber<&Model::poisoned, 0, UINT16_MAX>},
    {"pass_over", kModels, "0 to 65535 waiting messages", "256",
     kNumber<&Model::pass_over, 0, UINT16_MAX>},
    {"push_slots", kModels, "0 (no push mode) to 8, log2 of the slots", "0",
     kNumber<&Model::push_slots_log2, 0, regs::kPushSlotsLog2Max>},
    {"barrier", kModels, "0 or 1", "1", kFlag<&Model::barrier>},
    {"early_room", kModels, "0 to 65535 notifications", "1024",
     kNumber<&Model::early_notices, 0, UINT16_MAX>},
    {"rail", kModels, "0 or 1", "1", kFlag<&Model::rail>},
    {"topology", kSwitched, "a topology file", nullptr, kText<&Switched::topology, is_path>},
    {"at", kSwitched, "the name of an endpoint of the topology file", nullptr,
     kText<&Switched::at, is_path>},
    {"board", kShm, "a name of 1 to 31 letters, digits, '_' or '-'", "none",
     kText<&Shm::board, is_board_name>, "", 0},
    {"qp", kShm, "0 to 30", "none", kNumber<&Shm::queue_pair, 0, regs::kMaxQps - 1>, "", 0},
    {"pull", kShm, "0 or 1", "1", kFlag<&Shm::pull>},
    {"members", kUdp, "a file with lines DESTID HOST:PORT", "none", kText<&Udp::members, is_path>},
    {"bind", kUdp, "an IP address of this machine, or the name of an interface",
     "the first that others can reach", kText<&Udp::bind, is_path>},
    {"port", kUdp, "0 to 65535, 0 for any", "0", kNumber<&Udp::port, 0, UINT16_MAX>},
    {"patience", kUdp, "seconds, 1 to 3600", "30", kNumber<&Udp::patience_s, 1, 3600>},
    {"loss", kUdp, kSeedRate, "none", kSeedAndRate<&Udp::loss_seed, &Udp::loss_rate>},
    {"board", kRelay, "the number of a board, 0 to 63", "the emptiest",
     kNumber<&Relay::board, 0, 63>},
    {"wait", kSim, "milliseconds to wait for rio-cardsim, 0 to 60000", "1000",
     kNumber<&Sim::wait_ms, 0, 60000>},
    {"reset", kPci, "0 or 1", "1", kFlag<&Pci::reset>},
    {"iova", kPci, "allocated or virtual", "allocated", kIova},
    {"iommufd", kPci, "0 or 1", "0", kFlag<&Pci::iommufd>},
    {"release", kPci, "0 or 1", "1", kFlag<&Pci::release>},
    {"bar", kPlain, "a file, made by rio-cardsim; QEMU's mem-path of the ivshmem", nullptr,
     kText<&Plain::bar, is_path>},
    {"socket", kDoorbell, kListenAt, nullptr, kText<&Doorbell::socket, is_socket_path>},
    {"socket", kListen, kListenAt, nullptr, kText<&Listen::socket, is_socket_path>},
    {"ram", kGuests, "the file of the guest's RAM, share=on; it may appear later", nullptr,
     kText<&Guest::ram, is_path>},
    {"monitor", kGuests, "QEMU's monitor socket, at most 107 characters; for the guest's IOMMU",
     "none", kText<&Guest::monitor, is_socket_path>},
    {"devfn", kGuests, "[BUS:]DEVICE.FUNCTION of the card in the guest", "04.0", kFunction},
    {"vectors", kDoorbell, "1 to 64, the same as in QEMU's vectors=", "2",
     kNumber<&Doorbell::vectors, 1, 64>},
    {"vfs", kServed, "0 to 30, virtual functions", "0", kNumber<&Model::vfs, 0, regs::kMaxVfs>},
    {"name", kServed, "what messages and the report call the card", "its path",
     kText<&CardName::label, is_path>},
    {"at", kServed, "with --fabric: the endpoint where the card is plugged in", "none",
     kText<&CardName::at, is_path>},
};

}  // namespace

std::span<const KindRow> kinds() {
  return kKinds;
}

std::span<const Key> keys() {
  return kKeys;
}

Kinds kinds_at(Place place) {
  switch (place) {
    case Place::kDevice:
      return kEmulated;
    case Place::kPciDevice:
      return kPci;
    case Place::kCardsim:
      return kServed;
    default:
      return kEmulated | kSim | kPci;
  }
}

const KindRow& row_of(const Kind& kind) {
  const Kinds bit = 1u << kind.index();
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
