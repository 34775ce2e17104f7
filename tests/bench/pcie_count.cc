// Counts the PCIe bytes and TLPs of messages between two emulated cards that both send and receive:
//   pcie_count [BYTES, up to 256 [BURST, up to 32 [PUSH]]]
// The cards are exact, as only such cards count, and without the landing quirks. Messages are
// inline where the card takes them so. With PUSH 1 they go in push mode. Prints one JSON object;
// doorbells and slots are counted by the driver's own accesses to the BAR. Each slot is one TLP, as
// on a write-combined mapping.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fpga/model/card.hpp"
#include "tests/bench/emulated_pair.hpp"

namespace rio::bench {
namespace {

constexpr uint64_t kRounds = 4096;  // the rings wrap many times
constexpr uint32_t kStepsMax = 10000;
constexpr uint32_t kDoorbellBytes = 4 + 24;
constexpr uint32_t kSlotBytes = sizeof(regs::PushSlot) + 24;
constexpr uint32_t kPushSlotsLog2 = 8;

/// The counts of a port's transmit or shared receive ring, the doorbells included.
model::PcieCounts counts(const Port& port, regs::Ring ring) {
  auto sum = port.bus->card()->statistics().pcie[static_cast<uint32_t>(ring)];
  const bool sends = ring == regs::Ring::kTx;
  const pmd::MmioCounts bar = sends ? port.tx().mmio() : port.shared().mmio();
  const uint64_t slots = sends ? port.tx().pushed() : 0;
  sum.down_tlps += bar.writes;
  sum.down_bytes += (bar.writes - slots) * kDoorbellBytes + slots * kSlotBytes;
  return sum;
}

class Exchange {
 public:
  Exchange(uint32_t size_bytes, uint32_t burst, bool push)
      : cards_({.exact = true, .quirks = false, .push_slots_log2 = push ? kPushSlotsLog2 : 0}),
        size_bytes_(size_bytes),
        burst_(burst),
        bytes_(size_bytes, 0x5A) {}

  void run(uint64_t rounds) {
    for (uint64_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < 2; ++i) {
        send(cards_.port(i));
      }
      uint32_t left[2] = {burst_, burst_};
      for (uint32_t steps = 0; steps < kStepsMax && work(left); ++steps) {
        cards_.step();
      }
      if (left[0] != 0 || left[1] != 0) {
        give_up("delivering a burst", 0);
      }
    }
  }
  void print() {
    Port& port = cards_.port(0);
    const auto messages = static_cast<double>(kRounds * burst_);
    const char* separator = "{";
    for (const auto& [name, ring] :
         {std::pair{"send", regs::Ring::kTx}, std::pair{"receive", regs::Ring::kShared}}) {
      const model::PcieCounts now = counts(port, ring);
      const model::PcieCounts& before = before_[static_cast<uint32_t>(ring)];
      const auto each = [messages](uint64_t a, uint64_t b) {
        return static_cast<double>(a - b) / messages;
      };
      std::printf(
          "%s\"%s\": {\"up_bytes\": %.3f, \"down_bytes\": %.3f, \"up_tlps\": %.3f, "
          "\"down_tlps\": %.3f}",
          separator, name, each(now.up_bytes, before.up_bytes),
          each(now.down_bytes, before.down_bytes), each(now.up_tlps, before.up_tlps),
          each(now.down_tlps, before.down_tlps));
      separator = ", ";
    }
    std::puts("}");
  }
  void begin() {
    for (const regs::Ring ring : {regs::Ring::kTx, regs::Ring::kShared}) {
      before_[static_cast<uint32_t>(ring)] = counts(cards_.port(0), ring);
    }
  }

 private:
  void send(Port& port) {
    pmd::TxMessage messages[kBurst];
    const bool in_entry = size_bytes_ <= port.card->caps().inline_bytes_max();
    for (pmd::TxMessage& message : messages) {
      message = port.message(port.pool->memory().iova, 0, size_bytes_);
      if (in_entry) {
        message.data = bytes_.data();
        message.flags = pmd::TxFlags::kInline;
      }
    }
    if (port.tx().burst(messages, static_cast<uint16_t>(burst_)) != burst_) {
      give_up("sending a burst", 0);
    }
  }
  /// @return whether something of the burst is left.
  bool work(uint32_t (&left)[2]) {
    bool more = false;
    for (size_t i = 0; i < 2; ++i) {
      pmd::TxDone done[kBurst];
      static_cast<void>(cards_.port(i).tx().reap(done, kBurst));
      left[i] -= cards_.sink(i);
      more = more || left[i] != 0 || cards_.port(i).tx().outstanding() != 0;
    }
    return more;
  }

  EmulatedPair cards_;
  uint32_t size_bytes_;
  uint32_t burst_;
  std::vector<uint8_t> bytes_;
  model::PcieCounts before_[regs::kRingsPerQp];
};

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  const auto number = [&](int i, uint32_t otherwise) {
    return argc > i ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 0)) : otherwise;
  };
  rio::bench::Exchange exchange(
      number(1, 64), std::min<uint32_t>(number(2, 32), rio::bench::kBurst), number(3, 0) != 0);
  exchange.run(16);
  exchange.begin();
  exchange.run(rio::bench::kRounds);
  exchange.print();
  return 0;
}
