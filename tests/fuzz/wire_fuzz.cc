// Frames from a hostile peer: lengths, types, places, segments, through a ring of frames. The card
// must stay within the ring, and write nothing but what is posted.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/fuzz_card.hpp"

using namespace rio;
using namespace rio::test;

// Input: a byte of options, then frames: header as it comes (its length as the bytes say, or
// right), payload from what follows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  FuzzCard card((data[0] & 1) != 0, (data[0] & 2) != 0 ? 3 : 0);
  card.start_all();
  card.post_receive();
  const bool honest = (data[0] & 4) != 0;  // else the frame's own length is believed
  ++data;
  --size;
  while (size >= sizeof(model::Frame)) {
    model::Frame header;
    std::memcpy(static_cast<void*>(&header), data, sizeof(header));
    data += sizeof(header);
    size -= sizeof(header);
    if ((header.dest & 3) != 0) {
      header.dest = FuzzCard::kId;
    }
    header.source &= 3;
    const bool answer = header.type == model::FrameType::kAcks ||
                        header.type == model::FrameType::kResponse ||
                        header.type == model::FrameType::kMaintResponse;
    const size_t payload = size < (header.length & 0x1FFFu) ? size : header.length & 0x1FFFu;
    if (!card.send(header, data, payload, answer, honest)) {
      break;
    }
    data += payload;
    size -= payload;
    card.step(2);
  }
  card.step(20);
  card.check();
  return 0;
}
