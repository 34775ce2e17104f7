// Packets from a hostile process to the host of a relay. The host must stay within its memory,
// forward nothing in another process's name, and still serve the other processes.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "fpga/model/frame_ring.hpp"
#include "fpga/wire/relay/packet.hpp"
#include "fpga/wire/relay/traffic.hpp"

using namespace rio;
using namespace rio::wire::relay;
using model::InFrame;
using model::RingBox;

namespace {

constexpr uint32_t kRingBytes = 32 * 1024;

void want(bool held) {
  if (!held) {
    std::abort();
  }
}

/// Three processes; the first is the hostile one. destIDs are 10 times the number.
struct Rings {
  RingBox up[kLanes] = {RingBox(kRingBytes), RingBox(kRingBytes)};
  RingBox down[kLanes] = {RingBox(kRingBytes), RingBox(kRingBytes)};
  [[nodiscard]] Ends ends() {
    return {{&up[0].reader, &up[1].reader}, {&down[0].writer, &down[1].writer}};
  }
};

/// Checks that each announcement names its true destination, and a source port of its source.
void check(Rings& to, uint32_t number) {
  for (model::RingBox& ring : to.down) {
    while (const InFrame* in = ring.reader.peek()) {
      if (id_of(*in) == kControlBit) {
        const auto head = packet_as<Announce>(*in);
        want(head.dest_process == number && head.dest_port == 10 * number);
        want(head.source_port == 10 * head.source_process && head.length <= kTransferMax);
      }
      ring.reader.pop(in);
    }
    ring.reader.release();
  }
}

/// Sends the next packet: the bytes of the input, or with some fields corrected so that the packet
/// gets further.
void send(Rings& from, const uint8_t* data, size_t size) {
  const uint32_t lane = data[0] & 1u;
  const auto payload = static_cast<uint32_t>(size) - 1;
  model::Frame* const at = from.up[lane].writer.reserve(model::frame_bytes(payload));
  if (at == nullptr) {
    return;
  }
  std::memset(reinterpret_cast<uint8_t*>(at) + 4, 0, model::frame_bytes(payload) - 4);
  std::memcpy(reinterpret_cast<uint8_t*>(at) + 4, data + 1, size - 1);
  at->type = (data[0] & 2u) != 0 ? model::FrameType{kControlBit} : at->type;
  at->type = (data[0] & 4u) != 0 ? model::FrameType{kDataBit} : at->type;
  if (at->type == model::FrameType::kSkip) {
    at->type = model::FrameType{kCreditBit};
  }
  from.up[lane].writer.commit(at, model::frame_bytes(payload));
  from.up[lane].writer.publish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Rings rings[3];
  Traffic traffic;
  for (uint32_t i = 0; i < 3; ++i) {
    traffic.add(i + 1, 10 * (i + 1), 1, rings[i].ends());
  }
  while (size >= 2) {
    const size_t length = 2 + data[0] * 9u < size ? 2 + data[0] * 9u : size;
    send(rings[0], data + 1, length - 1);
    data += length;
    size -= length;
    traffic.sweep();
    check(rings[1], 2);
    check(rings[2], 3);
  }
  for (const auto& [process, what] : traffic.take_fouls()) {
    want(process == 1 && !what.empty());
    traffic.remove(process, false);
  }
  // The other processes are still served.
  model::Frame head{};
  head.clear();
  head.bytes = model::frame_bytes(8);
  head.type = model::FrameType::kDoorbell;
  head.source = 20;
  head.dest = 30;
  uint8_t frame[64] = {};
  std::memcpy(frame, &head, sizeof head);
  const Announce announce{.bytes = 0,
                          .id = 0,
                          .zero = {},
                          .sequence = 0,
                          .source_process = 2,
                          .dest_process = 3,
                          .source_port = 20,
                          .dest_port = 30,
                          .length = 0};
  want(put_transfer(rings[1].up[0].writer, announce, frame));
  traffic.sweep();
  want(rings[2].down[0].reader.peek() != nullptr);
  return 0;
}
