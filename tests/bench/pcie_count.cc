// Counts the PCIe bytes and TLPs of messages between two emulated cards that both send and receive:
//   pcie_count [BYTES, up to 256]
// The cards are exact, as only such cards count, and without the landing quirks. Bursts have 32
// messages, inline where the card takes them so. Prints one JSON object; doorbells are counted by
// the driver's own accesses to the BAR.
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

/// The counts of a port's transmit or shared receive ring, the doorbells included.
model::PcieCounts counts(const Port& port, regs::Ring ring) {
  auto sum = port.bus->card()->statistics().pcie[static_cast<uint32_t>(ring)];
  const pmd::MmioCounts bar = ring == regs::Ring::kTx ? port.tx().mmio() : port.shared().mmio();
  sum.down_tlps += bar.writes;
  sum.down_bytes += bar.writes * kDoorbellBytes;
  return sum;
}

class Exchange {
 public:
  explicit Exchange(uint32_t size_bytes)
      : cards_({.exact = true, .quirks = false}),
        size_bytes_(size_bytes),
        bytes_(size_bytes, 0x5A) {}

  void run(uint64_t rounds) {
    for (uint64_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < 2; ++i) {
        send(cards_.port(i));
      }
      uint32_t left[2] = {kBurst, kBurst};
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
    const auto messages = static_cast<double>(kRounds * kBurst);
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
    if (port.tx().burst(messages, kBurst) != kBurst) {
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
  std::vector<uint8_t> bytes_;
  model::PcieCounts before_[regs::kRingsPerQp];
};

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  rio::bench::Exchange exchange(
      static_cast<uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 64));
  exchange.run(16);
  exchange.begin();
  exchange.run(rio::bench::kRounds);
  exchange.print();
  return 0;
}
