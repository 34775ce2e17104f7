/// @file
/// The conformance suite's interface to a card, with no more than docs/card.md promises. The suite
/// tests any implementation of it: the model, a card in QEMU, the RTL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace rio::test {

/// Status of a type 13 response. RIO Part 2 §3.3.3
enum class Answer : uint8_t { kDone = 0, kRetry = 3, kError = 7 };

/// A packet on the wire, as the test's remote node sees it.
struct Packet {
  enum Kind : uint8_t {
    kSegment,        ///< type 11
    kSegmentAnswer,  ///< type 13 for a segment: place and segment say which
    kDoorbell,       ///< type 10; address is the information
    kRequest,        ///< NREAD, NWRITE, NWRITE_R, SWRITE, atomic
    kResponse,       ///< type 13 for a doorbell or a request, by tid
    kMaintRequest,   ///< type 8; address is the offset
    kMaintResponse,
    kPortWrite,
  };
  Kind kind = kSegment;
  uint32_t source = 0;
  uint32_t dest = 0;
  uint8_t mbox = 0;  ///< 0 to 63
  uint8_t letter = 0;
  uint8_t segment = 0;
  uint8_t segments = 1;
  uint16_t ssize = 256;
  uint8_t op = 0;  ///< regs::DmaOp or regs::MaintOp
  uint8_t tid = 0;
  uint8_t hops = 0;
  uint16_t length = 0;  ///< bytes requested or, of an atomic, of an operand; else data.size()
  uint64_t address = 0;
  Answer answer = Answer::kDone;
  std::vector<uint8_t> data;
};

/// Memory that the card can reach.
struct Memory {
  uint8_t* va = nullptr;
  uint64_t iova = 0;
  size_t len_bytes = 0;
};

/// A test's requirements on the card beyond the defaults; a card that cannot meet them is not made.
struct CardOptions {
  uint32_t queue_pairs = 1;
  uint32_t vfs = 0;
  uint32_t letters = 4;
  uint32_t tx_contexts = 64;
  uint32_t rx_contexts = 64;
  uint32_t pass_over = 256;
  uint32_t flights = 4096;
  uint32_t resting = 1024;
  uint32_t poisoned = 64;
  uint32_t push_slots_log2 = 0;
  bool barrier = true;
  uint32_t early_notices = 1024;
  bool rail = true;
  bool quirks = true;
  uint32_t vectors = 64;
};

/// A PCI function of a card: its BAR, the memory that it reaches, its interrupts.
class FunctionUnderTest {
 public:
  virtual ~FunctionUnderTest() = default;

  [[nodiscard]] virtual uint32_t read32(uint32_t offset_bytes) = 0;
  virtual void write32(uint32_t offset_bytes, uint32_t value) = 0;

  /// Map fresh zeroed memory, 4 KiB-aligned in both address spaces, with unmapped bus addresses on
  /// both sides.
  [[nodiscard]] virtual Memory map(size_t len_bytes) = 0;
  /// Make memory unreachable for the card; the test can still read the bytes.
  virtual void unmap(const Memory& memory) = 0;
  /// Number of accesses to unmapped memory.
  [[nodiscard]] virtual uint64_t refused_accesses() = 0;
  /// How often a vector was raised since the last call.
  [[nodiscard]] virtual uint32_t interrupts(uint32_t vector) = 0;
  /// Let the card work until it can only wait. No time passes.
  virtual void run() = 0;
};

/// A card; as a function, its physical one.
class CardUnderTest : public FunctionUnderTest {
 public:
  /// A virtual function. @param number below CardOptions::vfs.
  [[nodiscard]] virtual FunctionUnderTest& vf(uint32_t number) = 0;

  /// Let the card work for a moment, much less than run(). No time passes.
  virtual void work() = 0;
  /// Let time pass while the card works.
  virtual void advance_us(uint64_t us) = 0;
  /// Let time pass while the card does nothing (a model is not stepped; elsewhere as advance_us()).
  virtual void sleep_us(uint64_t us) = 0;

  /// Send a packet from the remote node. @return false: the card's port is full.
  [[nodiscard]] virtual bool send(const Packet& packet) = 0;
  /// Get the next packet that the card sent to the remote node. @return false: none.
  [[nodiscard]] virtual bool receive(Packet* out) = 0;
  /// Whether messages travel as segments. If not, a message travels as one unit, shown here as one
  /// segment with all its bytes, and the suite tests what both kinds have in common.
  [[nodiscard]] virtual bool segmented() const = 0;

  virtual void set_link(bool up) = 0;
  /// Lose all state, as by a function-level reset.
  virtual void lose_state() = 0;
  virtual void vanish() = 0;
};

/// A way to make a card; the parameter of the suite.
struct Implementation {
  std::string name;
  std::function<std::unique_ptr<CardUnderTest>(const CardOptions&)> make;
};

inline std::ostream& operator<<(std::ostream& out, const Implementation& i) {
  return out << i.name;
}

/// All implementations in this program.
[[nodiscard]] std::vector<Implementation> implementations();
/// Cards that say "done" before their last write is in memory: the suite must notice them.
[[nodiscard]] std::vector<Implementation> early_implementations();

}  // namespace rio::test
