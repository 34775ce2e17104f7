// The model as a card under test: exact (segments), fast (messages as units), and behind the
// PCIe layer with two seeds, once with completions that are torn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "tests/conformance/model_under_test.hpp"
#include "tests/support/manual_clock.hpp"

namespace rio::test {
namespace {

namespace m = rio::model;

constexpr uint32_t kRingBytes = 256 * 1024;  // more frames than a card takes in one step

/// One direction of one kind of frames.
struct FrameBox {
  m::FrameRingShared shared;
  std::vector<Page> memory{kRingBytes / sizeof(Page)};
  m::FrameWriter writer{&shared, reinterpret_cast<uint8_t*>(memory.data()), kRingBytes};
  m::FrameReader reader{&shared, reinterpret_cast<uint8_t*>(memory.data()), kRingBytes};
};

struct WireBoxes {
  FrameBox to_card;
  FrameBox answers_to_card;
  FrameBox from_card;
  FrameBox answers_from_card;
};

/// The card's end of a wire whose other end is the test.
class TestWire final : public m::Wire {
 public:
  explicit TestWire(WireBoxes* boxes)
      : out_{&boxes->from_card.writer, &boxes->answers_from_card.writer},
        in_{&boxes->to_card.reader, &boxes->answers_to_card.reader} {
    inbound_ = {&in_, 1};
  }
  m::Outbound* route(uint32_t /*dest_id*/) override { return &out_; }
  [[nodiscard]] bool link_up() const override { return true; }

 private:
  m::Outbound out_;
  m::Inbound in_;
};

struct Mode {
  bool exact;
  uint64_t pcie_seed;
  bool early_status = false;
  bool torn = false;
};

class ModelCard final : public ModelUnderTest {
 public:
  ModelCard(const Mode& mode, const CardOptions& options)
      : ModelUnderTest(options.queue_pairs), mode_(mode) {
    m::Config config;
    config.vfs = options.vfs;
    config.exact = mode.exact;
    config.pcie_seed = mode.pcie_seed;
    config.early_status = mode.early_status;
    config.torn = mode.torn;
    config.queue_pairs = options.queue_pairs;
    config.letters = options.letters;
    config.tx_contexts = options.tx_contexts;
    config.rx_contexts = options.rx_contexts;
    config.pass_over = options.pass_over;
    config.flights = options.flights;
    config.resting = options.resting;
    config.poisoned = options.poisoned;
    config.push_slots_log2 = options.push_slots_log2;
    config.barrier = options.barrier;
    config.early_notices = options.early_notices;
    config.rail = options.rail;
    config.quirk_last_at_256 = config.quirk_last_full_256 = options.quirks;
    config.vectors = options.vectors;
    if (!options.quirks) {
      config.shared_addr_log2 = config.dedicated_addr_log2 = config.dedicated_size_log2 = 3;
    }
    create(config, options.vectors > 0, &clock_, std::make_unique<TestWire>(&boxes_));
  }
  ~ModelCard() override { card_.reset(); }

  void run() override {
    // Fast mode reads control words every 16th step, link and timers every 256th.
    const int steps = mode_.pcie_seed != 0 ? 400 : mode_.exact ? 40 : 300;
    for (int i = 0; i < steps; ++i) {
      card_->step();
    }
  }
  void advance_us(uint64_t us) override {
    constexpr uint64_t kSlices = 20;
    for (uint64_t i = 0; i < kSlices; ++i) {
      clock_.advance_ns(us * 1000 / kSlices);
      run();
    }
  }

  void sleep_us(uint64_t us) override { clock_.advance_ns(us * 1000); }

  bool send(const Packet& packet) override;
  bool receive(Packet* out) override;
  bool segmented() const override { return mode_.exact || mode_.pcie_seed != 0 || !vfs_.empty(); }

 private:
  bool unpack(const m::InFrame& frame);

  Mode mode_;
  ManualClock clock_;
  WireBoxes boxes_;
  std::deque<Packet> received_;
};

m::FrameType frame_type(Packet::Kind kind) {
  switch (kind) {
    case Packet::kSegment:
      return m::FrameType::kSegment;
    case Packet::kSegmentAnswer:
      return m::FrameType::kAcks;
    case Packet::kDoorbell:
      return m::FrameType::kDoorbell;
    case Packet::kRequest:
      return m::FrameType::kRequest;
    case Packet::kResponse:
      return m::FrameType::kResponse;
    case Packet::kMaintRequest:
      return m::FrameType::kMaintRequest;
    case Packet::kMaintResponse:
      return m::FrameType::kMaintResponse;
    default:
      return m::FrameType::kPortWrite;
  }
}

bool ModelCard::send(const Packet& packet) {
  const bool answers = packet.kind == Packet::kSegmentAnswer || packet.kind == Packet::kResponse ||
                       packet.kind == Packet::kMaintResponse;
  FrameBox& box = answers ? boxes_.answers_to_card : boxes_.to_card;
  std::vector<uint8_t> data = packet.data;
  const auto place = static_cast<uint8_t>(m::place_of(packet.mbox, packet.letter));
  if (packet.kind == Packet::kSegmentAnswer) {
    data = {place,
            static_cast<uint8_t>(packet.segment | static_cast<uint32_t>(packet.answer) << 4)};
  }
  const uint32_t bytes = m::frame_bytes(m::padded(static_cast<uint32_t>(data.size())));
  m::Frame* frame = box.writer.reserve(bytes);
  if (frame == nullptr) {
    return false;
  }
  frame->clear();
  frame->type = frame_type(packet.kind);
  if (packet.kind == Packet::kSegment && packet.segments == 1 && !segmented()) {
    frame->type = m::FrameType::kMessage;
  }
  frame->op = answers ? static_cast<uint8_t>(packet.answer) : packet.op;
  frame->tid = packet.tid;
  frame->hops = packet.hops;
  frame->source = packet.source;
  frame->dest = packet.dest;
  frame->length = static_cast<uint16_t>(packet.length != 0 ? packet.length : data.size());
  frame->place = place;
  frame->segment = packet.segment;
  frame->segments = packet.segments;
  frame->ssize = packet.ssize;
  frame->address = packet.address;
  std::memset(frame->payload(), 0, bytes - sizeof(m::Frame));
  std::copy(data.begin(), data.end(), frame->payload());
  box.writer.commit(frame, bytes);
  box.writer.publish();
  return true;
}

bool ModelCard::unpack(const m::InFrame& frame) {
  Packet packet;
  packet.source = frame.source;
  packet.dest = frame.dest;
  packet.op = frame.op;
  packet.tid = frame.tid;
  packet.hops = frame.hops;
  packet.length = frame.length;
  packet.address = frame.address;
  packet.mbox = static_cast<uint8_t>(frame.mbox());
  packet.letter = frame.place >> 6;
  packet.segment = frame.segment;
  packet.segments = frame.segments;
  packet.ssize = frame.ssize;
  packet.answer = static_cast<Answer>(frame.op);
  uint32_t payload = frame.length;
  switch (frame.type) {
    case m::FrameType::kMessage:
    case m::FrameType::kSegment:
      packet.kind = Packet::kSegment;
      payload = m::padded(payload);
      break;
    case m::FrameType::kAcks:
      packet.kind = Packet::kSegmentAnswer;
      for (uint32_t i = 0; i + 1 < frame.length; i += 2) {
        const m::Ack ack{frame.payload()[i], frame.payload()[i + 1]};
        packet.mbox = ack.place & 63;
        packet.letter = ack.place >> 6;
        packet.segment = static_cast<uint8_t>(ack.segment());
        packet.answer = static_cast<Answer>(ack.answer());
        received_.push_back(packet);
      }
      return true;
    case m::FrameType::kDoorbell:
      packet.kind = Packet::kDoorbell;
      payload = 0;
      break;
    case m::FrameType::kRequest:
    case m::FrameType::kMaintRequest:
      packet.kind = frame.type == m::FrameType::kRequest ? Packet::kRequest : Packet::kMaintRequest;
      payload = frame.bytes - static_cast<uint32_t>(sizeof(m::Frame));
      break;
    case m::FrameType::kResponse:
      packet.kind = Packet::kResponse;
      break;
    case m::FrameType::kMaintResponse:
      packet.kind = Packet::kMaintResponse;
      break;
    case m::FrameType::kPortWrite:
      packet.kind = Packet::kPortWrite;
      break;
    default:
      ADD_FAILURE() << "frame of type " << static_cast<int>(frame.type);
      return false;
  }
  packet.data.assign(frame.payload(), frame.payload() + payload);
  received_.push_back(std::move(packet));
  return true;
}

bool ModelCard::receive(Packet* out) {
  for (m::FrameReader* reader : {&boxes_.from_card.reader, &boxes_.answers_from_card.reader}) {
    for (const m::InFrame* f = reader->peek(); f != nullptr && unpack(*f); f = reader->peek()) {
      reader->pop(f);
    }
    reader->release();
  }
  if (received_.empty()) {
    return false;
  }
  *out = std::move(received_.front());
  received_.pop_front();
  return true;
}

Implementation implementation(const char* name, Mode mode) {
  return {name, [mode](const CardOptions& options) {
            return std::make_unique<ModelCard>(mode, options);
          }};
}

}  // namespace

std::vector<Implementation> implementations() {
  return {implementation("model_exact", {true, 0}), implementation("model_fast", {false, 0}),
          implementation("model_pcie_1", {true, 1}),
          implementation("model_pcie_7_torn", {true, 7, false, true})};
}

std::vector<Implementation> early_implementations() {
  return {implementation("model_pcie_1_early", {true, 1, true})};
}

}  // namespace rio::test
