// Frames from a hostile peer, with any lengths, types, places and segments, through a ring of
// frames. The card must stay within the ring, and write to posted buffers only.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "tests/fuzz/fuzz_card.hpp"

using namespace rio;
using namespace rio::test;

namespace {

/// Changes headers while the card reads them, as another process may.
class Flipper {
 public:
  Flipper(uint8_t* ring, uint8_t seed)
      : thread_([this, ring, seed] {
          for (uint32_t x = seed; !stop_.load(std::memory_order_relaxed);) {
            x = x * 1664525u + 1013904223u;
            // Any header field but the length, which the card and the test rely on.
            uint8_t* const at = ring + (x >> 12) % 1024;
            if ((static_cast<uintptr_t>(at - ring) & 31) >= 4) {
              __atomic_store_n(at, static_cast<uint8_t>(x >> 24), __ATOMIC_RELAXED);
            }
          }
        }) {}
  ~Flipper() {
    stop_ = true;
    thread_.join();
  }
  Flipper(const Flipper&) = delete;
  Flipper& operator=(const Flipper&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

// Input: a byte of options, then frames: each a header (with the length that the bytes say, or the
// right one), and a payload.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const bool looks = (data[0] & 16) != 0;  // the host waits for messages by looks
  FuzzCard card((data[0] & 1) != 0, (data[0] & 2) != 0 ? 3 : 0, looks ? 1 : 2);
  card.start_all();
  card.post_receive();
  // Memory of the peer's that the card has mapped; addresses in it are short, so that they are
  // found.
  static uint8_t mapped[8192];
  model::Windows windows;
  windows.add({0x1000, sizeof(mapped), mapped});
  card.in().windows = (data[0] & 32) != 0 ? &windows : nullptr;
  const bool honest = (data[0] & 4) != 0;  // otherwise the frame's own length is published
  std::unique_ptr<Flipper> flipper;
  if ((data[0] & 8) != 0) {
    flipper = std::make_unique<Flipper>(card.ring_to_card(), data[0]);
  }
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
                        header.type == model::FrameType::kPulled ||
                        header.type == model::FrameType::kResponse ||
                        header.type == model::FrameType::kMaintResponse;
    const size_t payload = size < (header.length & 0x1FFFu) ? size : header.length & 0x1FFFu;
    if (!card.send(header, data, payload, answer, honest)) {
      break;
    }
    data += payload;
    size -= payload;
    card.step(looks ? 0 : 2);
    card.look(looks ? 2 : 0);
  }
  card.step(20);
  card.check();
  return 0;
}
