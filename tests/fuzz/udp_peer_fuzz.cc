// A member of the wire over UDP that sends any greetings, and any datagrams of a connection, whose
// frames reach the rings of a card. Nothing may be written outside of the rings, and frames in them
// are valid.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fpga/wire/udp/connection.hpp"
#include "fpga/wire/udp/contact.hpp"
#include "fpga/wire/udp/datagram.hpp"
#include "fpga/wire/udp/frame_units.hpp"

using namespace rio::wire::udp;
using rio::model::InFrame;

namespace {

constexpr Ids kIds = {5, 1, 64, 2};

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// Takes frames as the card does.
void take_frames(FrameUnits& lanes, UnitKind lane) {
  rio::model::FrameReader& reader = *lanes.in(lane);
  for (const InFrame* frame = reader.peek(); frame != nullptr; frame = reader.peek()) {
    require(frame->source - kIds.theirs < kIds.their_count);
    require(frame->dest - kIds.ours < kIds.our_count);
    for (uint32_t i = 0; frame->type == rio::model::FrameType::kPull &&
                         i < frame->length / sizeof(rio::model::PullPart);
         ++i) {
      rio::model::PullPart part;
      std::memcpy(&part, frame->payload() + i * sizeof(part), sizeof(part));
      std::vector<uint8_t> to(part.length);
      const rio::model::PullPiece piece = {to.data(), part.address, part.length};
      require(lanes.puller()->pull({&piece, 1}) == part.length);
    }
    reader.pop(frame);
    reader.release();
  }
  require(!reader.foul());
}

class Victim {
 public:
  void hear(std::vector<uint8_t> bytes) {
    Greeting greeting;
    std::vector<uint8_t> copy = bytes;
    if (decode(copy, Key(), &greeting) == 0) {
      require(greeting.ids >= 1 && greeting.ids <= kIdsMax);
      require(greeting.kind >= kKindHello && greeting.kind <= kKindAsk);
      // The peer cannot guess random values: it can neither end the connection as unknown nor pass
      // for its other end.
      require(!doubt_.answered_by(greeting, attempt_) && !knows(attempt_, greeting));
    }
    if (session_.take(bytes, ++now_ns_) == -EPROTO || lanes_.foul()) {
      return;
    }
    take_frames(lanes_, UnitKind::kRequests);
    take_frames(lanes_, UnitKind::kResponses);
    static_cast<void>(session_.offer_again());
    session_.look(now_ns_);
    std::vector<uint8_t> out(session_.datagram_bytes());
    while (session_.send(now_ns_, out) > 0) {
    }
  }

 private:
  static Agreed agreed() {
    Agreed out;
    out.datagram_bytes = kDatagramMin;
    return out;
  }
  /// A connection that is up, and in doubt.
  static Attempt connected() {
    Attempt out;
    require(draw(out.challenge) == 0);
    out.session = 1;
    out.they.emplace();
    return out;
  }

  uint64_t now_ns_ = 0;
  Attempt attempt_ = connected();
  Doubt doubt_ = [this] {
    Doubt out;
    Greeting question;
    out.begin(0, 0);
    require(out.ask(0, attempt_, {}, &question) == 0);
    return out;
  }();
  FrameUnits lanes_{kIds};
  Connection session_{agreed(), &lanes_, 0};
};

}  // namespace

// Input: datagrams, each behind its length (u16).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Victim victim;
  while (size >= 2) {
    const size_t wanted = static_cast<size_t>(data[0] | data[1] << 8);
    const size_t length = wanted < size - 2 ? wanted : size - 2;
    victim.hear({data + 2, data + 2 + length});
    data += 2 + length;
    size -= 2 + length;
  }
  return 0;
}
