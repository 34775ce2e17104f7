/// @file
/// Cards on a wire, each with a host, stepped by hand. Two worlds can be given the same input, with
/// cards that work in another way, and their results compared.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/fpga/model/same_node.hpp"

namespace rio::test {

/// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 … n-1.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(next() % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

/// The connection between the cards of a world.
enum class Wiring : uint8_t {
  kLoop,         ///< one card that hears itself
  kCable,        ///< two cards; plain messages go straight across
  kRings,        ///< three cards, frames through rings
  kPulls,        ///< two cards, long messages are pulled
  kBytesBehind,  ///< two cards, runs of long messages in order carry their bytes
  kMapped,       ///< two cards, each has mapped the memory of the other's host
};

struct WorldConfig {
  Wiring wiring = Wiring::kCable;
  model::Config card;
  uint32_t retry_limit = 0;
  uint32_t start = 0;  ///< first index of each ring
};

/// A queue pair of a node.
struct Spot {
  uint32_t node = 0;
  uint32_t pair = 0;
};

/// A message or doorbell to be posted.
struct Send {
  Spot from;
  regs::TxDesc desc{};
  bool wide = false;
  regs::TxWide second{};
};

/// A completion of the transmit ring, without its phase.
struct TxResult {
  uint32_t index;
  uint32_t cookie;
  regs::Status status;
  uint32_t retries;
  uint32_t time;
};

/// A completion of a receive ring, without its phase and its letter, which the card chooses. With
/// the bytes of its buffer and the bytes behind it, except for a message that failed, which may
/// leave any bytes.
struct RxResult {
  uint32_t ring;  ///< shared or dedicated
  uint32_t source;
  uint32_t dest_id;
  uint32_t mbox;
  uint32_t length;
  uint32_t segments;
  uint32_t cookie;
  regs::Status status;
  std::string bytes;
  auto operator<=>(const RxResult&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 errs
};
inline std::ostream& operator<<(std::ostream& out, const RxResult& result) {
  return out << "ring " << result.ring << " source " << result.source << " mailbox " << result.mbox
             << " length " << result.length << " segments " << result.segments << " cookie "
             << result.cookie << " status " << static_cast<uint32_t>(result.status) << " bytes "
             << std::hash<std::string>()(result.bytes);
}

/// A doorbell, without phase and time.
struct BellResult {
  uint32_t source;
  uint32_t dest_id;
  uint32_t info;
  auto operator<=>(const BellResult&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 errs
};
inline std::ostream& operator<<(std::ostream& out, const BellResult& result) {
  return out << "doorbell " << result.info << " of " << result.source;
}

/// All that a pair's rings have completed since the last take().
struct Results {
  std::vector<TxResult> sent;
  std::vector<RxResult> received;
  std::vector<uint32_t> indices;   ///< indices of the entries of `received`
  std::vector<uint32_t> arrivals;  ///< arrival numbers of messages of the shared ring
  std::vector<BellResult> bells;
  std::vector<std::array<uint32_t, 7>> events;
};

class World {
 public:
  static constexpr uint32_t kTxLog2 = 4;
  static constexpr uint32_t kSharedLog2 = 6;
  static constexpr uint32_t kBellsLog2 = 3;
  static constexpr uint32_t kDedicated = 2;  ///< rings of a pair: mailboxes 2 and 3
  static constexpr uint32_t kTxBytes = 96 * 1024;
  static constexpr uint32_t kMsOfQuiet = 50;  ///< longer than any quarantine

  /// @param mixed the hosts call each of Card's three kinds of steps at random; otherwise step()
  /// only.
  World(const WorldConfig& config, bool mixed, uint64_t seed);

  [[nodiscard]] uint32_t nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  [[nodiscard]] uint32_t pairs() const { return config_.card.queue_pairs; }
  [[nodiscard]] static uint32_t dest_id(Spot spot) { return ((spot.node + 1) << 8) + spot.pair; }
  /// The only sender for a pair's dedicated rings.
  [[nodiscard]] Spot dedicated_source(uint32_t node) const { return {(node + 1) % nodes(), 0}; }
  /// The receiver of a message by the receive map. @return false: there is none.
  [[nodiscard]] bool target(uint32_t dest_id, uint32_t mbox, Spot* out) const;
  /// Bus address of the bytes that a node sends: the same pattern in all worlds.
  [[nodiscard]] uint64_t tx_bytes(uint32_t node) const { return hosts_[node][0].tx_bytes.iova; }

  void post_shared(Spot spot, uint32_t count);
  /// Number of buffers in the shared ring without a message.
  [[nodiscard]] uint32_t shared_left(Spot spot) const;
  /// @param which 0 for mailbox 2, 1 for mailbox 3.
  void post_dedicated(Spot spot, uint32_t which, uint32_t size, uint32_t cookie);
  void restart_dedicated(Spot spot, uint32_t which);
  /// Stops the transmit ring; messages that were not sent whole are completed, too.
  void stop_tx(Spot spot);
  void start_tx(Spot spot) { host(spot).tx->start(); }
  /// Makes room for doorbells again.
  void give_bells(Spot spot);
  /// @return the index of the message's descriptor.
  uint32_t post(const Send& send);
  void ring_doorbell(Spot spot) { host(spot).tx->post(); }
  /// Resets a card, which loses everything under way, and starts its rings again.
  void reset(uint32_t node) { start(node); }
  void set_link(uint32_t node, bool up);
  /// Lets time pass, and has all cards check their clocks and timers.
  void pass_us(uint64_t us);
  /// Steps each card once.
  void step_all();
  /// Steps all cards until none makes progress any more.
  void settle();
  [[nodiscard]] uint32_t ticks() { return static_cast<uint32_t>(clock_.now_ns() / 100); }
  /// Number of messages and doorbells that are posted and not completed.
  [[nodiscard]] uint32_t unfinished();
  [[nodiscard]] Results take(Spot spot);
  [[nodiscard]] model::PortCounts counts(uint32_t node) {
    return nodes_[node]->card().statistics().port;
  }
  [[nodiscard]] uint64_t refused(uint32_t node) { return nodes_[node]->refused_accesses(); }
  /// Whether the bytes to be sent are unchanged.
  [[nodiscard]] bool tx_bytes_whole(uint32_t node) const;

 private:
  static constexpr uint32_t kSlotBytes = 8192;  ///< a buffer and a red zone
  static constexpr uint8_t kRed = 0xA5;

  struct HostPair {
    std::unique_ptr<TestRing> tx;
    std::unique_ptr<TestRing> shared;
    std::unique_ptr<TestRing> bells;
    std::unique_ptr<TestRing> events;
    std::unique_ptr<TestRing> dedicated[kDedicated];
    Memory slots;
    Memory dedicated_slots[kDedicated];
    Memory tx_bytes;
    uint32_t posted = 0;  ///< posted to the transmit ring and, as of the last take(), not completed
    std::vector<TxResult> sent;
    std::vector<BellResult> rung;
  };

  HostPair& host(Spot spot) { return hosts_[spot.node][spot.pair]; }
  [[nodiscard]] const HostPair& host(Spot spot) const { return hosts_[spot.node][spot.pair]; }
  void make_nodes();
  void start(uint32_t node);
  void start_rings(Spot spot);
  void start_dedicated(Spot spot, uint32_t which);
  [[nodiscard]] RingConfig ring(Spot spot, uint32_t number, uint32_t log2) const;
  [[nodiscard]] uint64_t activity();
  [[nodiscard]] static std::string slot(const Memory& slots, uint32_t index, uint32_t log2);
  static void take_sent(HostPair& pair);
  static void take_bells(HostPair& pair);
  static void take_shared(HostPair& pair, Results* out);
  static void take_dedicated(HostPair& pair, uint32_t which, Results* out);

  WorldConfig config_;
  bool mixed_;
  Random hooks_;
  ManualClock clock_;
  std::deque<OneWay> ways_;
  std::shared_ptr<model::Cable> cable_ = model::make_cable();
  std::vector<std::unique_ptr<SameNode>> nodes_;
  std::vector<std::vector<HostPair>> hosts_;
  std::vector<bool> links_;
};

}  // namespace rio::test
