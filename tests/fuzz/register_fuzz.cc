// Writes to any word of the BAR, interleaved with steps and frames: the card stays within mapped
// memory and alive.
#include <cstdint>
#include <cstring>

#include "tests/fuzz/fuzz_card.hpp"

using namespace rio;
using namespace rio::test;

// Input: a byte of options, then commands of 8 bytes: what (1), which (3), value (4).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  FuzzCard card((data[0] & 1) != 0, (data[0] & 2) != 0 ? 3 : 0);
  if ((data[0] & 4) != 0) {
    card.start_all();
    card.post_receive();
  }
  for (++data, --size; size >= 8; data += 8, size -= 8) {
    uint32_t value = 0;
    std::memcpy(&value, data + 4, 4);
    const uint32_t which = data[1] | data[2] << 8 | data[3] << 16;
    const uint32_t ring = which & 15;
    switch (data[0] % 8) {
      case 0:
        card.write(static_cast<uint32_t>(which % card.bar_words()) * 4, value);
        break;
      case 1:
        card.write(regs::qp::ring_control(which >> 4 & 1, ring), value);
        break;
      case 2:
        card.write(regs::qp::tail(0, ring), value & 0x1F);
        break;
      case 3:
        card.write(regs::qp::ring_size(which >> 4 & 1, ring), value & 0x1F1F);
        break;
      case 4:
        card.write(regs::id::gen_req(), value);
        break;
      case 5: {
        model::Frame frame{};
        frame.type = static_cast<model::FrameType>(value & 15);
        frame.source = 2;
        frame.dest = FuzzCard::kId;
        frame.length = static_cast<uint16_t>(which & 0xFF);
        frame.place = data[7];
        frame.segment = data[6] & 15;
        frame.segments = static_cast<uint8_t>(1 + (data[6] >> 4));
        frame.ssize = 256;
        const uint8_t payload[256] = {};
        const bool answer = frame.type == model::FrameType::kAcks;
        static_cast<void>(card.send(frame, payload, frame.length, answer, true));
        break;
      }
      case 6:
        value % 64 == 0 ? card.card().lose_state() : card.card().set_link((value & 1) != 0);
        break;
      default:
        card.step(1 + (value & 31));
        card.drop_sent();
    }
  }
  card.step(40);
  FuzzCard::require(*card.word(regs::id::heartbeat()) != 0 || true);
  return 0;
}
