/// @file
/// The name of a card, parsed: one struct for each kind of card, and what all emulated cards have
/// in common. docs/cards.md describes the grammar for users.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rio::name {

/// The way in which an emulated card gets its steps.
enum class Stepping : uint8_t {
  kInline,  ///< each burst steps it (any thread; one at a time)
  kThread,  ///< a thread of its own; bursts do nothing
  kManual,  ///< a test, step by step; no name says this
};

/// Options of every card that is emulated, whatever it is wired to.
struct Model {
  uint32_t queue_pairs = 1;  ///< 1 to 31
  Stepping stepping = Stepping::kInline;
  bool exact = false;  ///< segment by segment; set by faults and pcie_seed, too
  bool quirks = true;  ///< the two landing quirks of [S0], and its alignments
  uint64_t fault_seed = 0;
  double fault_rate = 0.0;       ///< chance of a fault each time that it could happen, 0 to 1
  bool early_status = false;     ///< a defect: says "done" before its last write
  bool torn = false;             ///< words of a completion become visible in any order
  uint32_t flights = 4096;       ///< messages of one segment in flight of a queue pair, 1 to 65535
  uint32_t resting = 1024;       ///< letters of a queue pair that rest, 0 to 65535
  uint32_t rx_contexts = 64;     ///< messages of several segments reassembled at once, 1 to 1023
  uint32_t poisoned = 64;        ///< poisoned contexts, 0 to 65535
  uint32_t pass_over = 256;      ///< waiting entries that the card passes over, 0 to 65535
  uint32_t push_slots_log2 = 0;  ///< log2 of the slots of push mode, 0 (no push mode) to 8
  bool barrier = true;           ///< each queue pair has a barrier engine
  uint64_t pcie_seed = 0;        ///< not 0: the PCIe layer delays and reorders by this seed
  uint32_t vfs = 0;              ///< rio-cardsim: virtual functions, 0 to 30
  /// Barrier notifications of all queue pairs that may come before their descriptor, 0 to 65535.
  uint32_t early_notices = 1024;
  bool rail = true;  ///< the physical function has a rails block
};

/// A card on a cable of this process.
struct Cable {
  /// "loop": wired to itself. Any other name: two cards of this process that give the same name are
  /// wired to each other; a third is refused.
  std::string name = "loop";
};

/// A card at an endpoint of switches that a topology file (docs/fabric.md) describes. Cards of this
/// process that name the same file are in the same fabric.
struct Switched {
  std::string topology;
  std::string at;  ///< name of the endpoint
};

/// A card in a fabric that processes of this user share.
struct Shm {
  std::string fabric;
  /// Not empty: the card is queue pair `queue_pair` of this board of Model::queue_pairs queue
  /// pairs, and the destIDs are the board's.
  std::string board{};
  uint32_t queue_pair = 0;
  bool pull = true;  ///< long messages are copied once, straight out of the sender's process
};

/// A card in a fabric of machines, over UDP.
struct Udp {
  std::string fabric;
  std::string members{};     ///< a file that says who is in it, and where
  std::string bind{};        ///< address or interface; empty: the first that others can reach
  uint16_t port = 0;         ///< 0: any
  uint32_t patience_s = 30;  ///< silence after which a peer is taken for dead
  uint64_t loss_seed = 0;
  double loss_rate = 0.0;  ///< chance of each datagram to be lost, doubled or late, 0 to 1
};

/// A card behind a relay of this user.
struct Relay {
  std::string name;
  uint32_t board = ~0u;  ///< from 0; all ones: the emptiest board
};

/// A card of a rio-cardsim process.
struct Sim {
  std::string socket;       ///< that rio-cardsim listens at
  uint32_t wait_ms = 1000;  ///< for a rio-cardsim that is just starting, 0 to 60000
};

/// A card in this machine.
struct Pci {
  std::string address;      ///< "0000:03:00.0"; empty for a device that DPDK has found
  bool reset = true;        ///< reset the function when it is opened
  bool iova_is_va = false;  ///< bus addresses are the program's; else they are allocated
  bool iommufd = false;     ///< through iommufd; else only if the kernel has no groups
  bool release = true;  ///< given up when the kernel asks for it, by a thread that waits for that
};

/// A guest of QEMU that a card of rio-cardsim works for.
struct Guest {
  std::string ram;        ///< the file of its RAM
  std::string monitor{};  ///< QEMU's monitor; empty: no IOMMU is walked
  uint16_t bdf = 0x20;    ///< the guest's name for the card, bus << 8 | devfn
};

/// rio-cardsim: a card for a guest, through ivshmem-plain.
struct Plain {
  std::string bar;  ///< file that becomes the BAR
  Guest guest;
};

/// rio-cardsim: a card for a guest, through ivshmem-doorbell, with interrupts.
struct Doorbell {
  std::string socket;
  Guest guest;
  uint32_t vectors = 2;  ///< 1 to 64, as many as QEMU was told
};

/// rio-cardsim: a card for a program of this machine, which calls it Sim.
struct Listen {
  std::string socket;
};

using Kind = std::variant<Cable, Switched, Shm, Udp, Relay, Sim, Pci, Plain, Doorbell, Listen>;

/// Where a card is named.
enum class Place : uint8_t {
  kProgram,    ///< a program opens it: "shm:lab,id=3"
  kDevice,     ///< arguments of a virtual device of DPDK: "id=3,wire=shm:lab"; without wire= it is
               ///< emu:loop, and without qps= it has two queue pairs
  kPciDevice,  ///< arguments of a PCI device that DPDK has found: "id=3"
  kCardsim,    ///< rio-cardsim makes it: "listen:socket=/tmp/a"
};

struct CardName {
  Kind kind;
  Model model;                     ///< emulated kinds, and those of rio-cardsim
  uint32_t id = 0;                 ///< first destID; 0: none was given
  std::string label;               ///< rio-cardsim: the card's name in messages; may be empty
  std::string at;                  ///< rio-cardsim: endpoint of --fabric; may be empty
  std::vector<std::string> given;  ///< the keys that the text has, each by its documented spelling

  [[nodiscard]] bool has(std::string_view key) const {
    return std::find(given.begin(), given.end(), key) != given.end();
  }
};

/// Whether cards of other processes reach it, by a wire that this process joins.
[[nodiscard]] inline bool is_in_fabric(const CardName& name) {
  return std::holds_alternative<Shm>(name.kind) || std::holds_alternative<Udp>(name.kind) ||
         std::holds_alternative<Relay>(name.kind);
}

}  // namespace rio::name
