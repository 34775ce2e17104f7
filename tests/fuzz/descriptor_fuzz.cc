// Descriptors of all rings as a broken driver might write them. With any contents the card accesses
// mapped memory only, and completes each entry exactly once.
#include <cstdint>
#include <cstring>

#include "tests/fuzz/fuzz_card.hpp"
#include "tests/support/push_slot.hpp"

using namespace rio;
using namespace rio::test;

namespace {

/// Writes the next slot of the transmit ring. @return units of the entry.
uint32_t write_slot(FuzzCard& card, const uint8_t* desc, uint32_t index, uint32_t number) {
  std::array<uint32_t, 15> entry{};
  std::memcpy(entry.data(), desc, sizeof(regs::TxDesc));
  uint32_t at = regs::qp::base(0) + regs::kPushSlotsAt +
                number % (1u << FuzzCard::kSlotsLog2) * uint32_t{sizeof(regs::PushSlot)};
  for (const uint32_t word : slot_words(entry, index, number, FuzzCard::kSlotsLog2)) {
    card.write(at, word);
    at += 4;
  }
  return 1 + regs::tx_desc::Control::units.get(entry[0]);
}

}  // namespace

// Input: a byte of options, then entries: ring (1 byte), 32 bytes of descriptor.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const bool push = (data[0] & 8) != 0;
  FuzzCard card((data[0] & 1) != 0, (data[0] & 2) != 0 ? 3 : 0, 2, push);
  uint32_t slots = 0;
  card.start_all();
  const bool mapped = (data[0] & 4) != 0;  // addresses are moved into mapped memory
  uint32_t tails[16] = {};
  ++data;
  --size;
  while (size >= 33) {
    const uint32_t rings[] = {0, 1, 3, 4, 8, 9};
    const uint32_t ring = rings[data[0] % 6];
    const uint32_t bytes = ring == 1 ? 8 : ring >= 8 ? 16 : 32;
    uint8_t desc[32];
    std::memcpy(desc, data + 1, sizeof(desc));
    if (mapped) {
      const uint64_t addr = FuzzCard::buffers_iova() + (data[2] & 0x38u);
      const size_t at = ring == 1 || ring >= 8 ? 0 : ring == 0 ? 16 : 24;
      std::memcpy(desc + at, &addr, 8);
      if (bytes == 32) {
        const uint32_t length = (data[12] | data[13] << 8) & 0xFFFu;
        std::memcpy(desc + (ring == 0 ? 12 : 8), &length, 4);
      }
    }
    std::memcpy(card.ring(ring) + static_cast<size_t>(tails[ring] & 15) * bytes, desc, bytes);
    if (push && ring == 0) {
      tails[ring] += write_slot(card, desc, tails[ring], slots++);
    } else {
      card.write(regs::qp::tail(0, ring), ++tails[ring]);
    }
    card.step(3);
    card.drop_sent();
    data += 33;
    size -= 33;
  }
  card.step(100);
  for (const uint32_t ring : {0u, 1u, 3u, 4u, 8u, 9u}) {
    card.write(regs::qp::ring_control(0, ring), 2);
  }
  // A DMA request of a mebibyte has many packets that may time out; each time-out ends all of them.
  for (int i = 0; i < 200; ++i) {
    card.step(4);
    card.drop_sent();
  }
  card.step(40);
  for (const uint32_t ring : {0u, 1u, 3u, 4u, 8u, 9u}) {
    const uint32_t status = *card.word(regs::qp::ring_status(0, ring));
    FuzzCard::require(regs::qp::RingStatus::state.get(status) ==
                      static_cast<uint32_t>(regs::RingState::kStopped));
  }
  card.check();
  return 0;
}
