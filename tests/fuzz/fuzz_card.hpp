/// @file
/// A model card with all rings running, for fuzz targets. A page in which no buffer is posted is
/// watched for writes.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/frame_ring.hpp"
#include "fpga/model/host_memory.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "tests/support/manual_clock.hpp"

namespace rio::test {

class FuzzCard {
 public:
  static constexpr uint32_t kId = 0x11;
  static constexpr uint32_t kLog2 = 4;

  static constexpr uint32_t kSlotsLog2 = 1;

  /// @param push the transmit ring is in push mode.
  FuzzCard(bool exact, uint64_t pcie_seed, uint32_t queue_pairs = 2, bool push = false)
      : boxes_(std::make_unique<Box[]>(5)), push_(push) {
    model::Config config;
    config.queue_pairs = queue_pairs;
    config.exact = exact;
    config.pcie_seed = pcie_seed;
    config.rx_contexts = 4;
    config.push_slots_log2 = push ? kSlotsLog2 : 0;
    model::Ends ends;
    bar_.resize(model::Card::bar_bytes(queue_pairs) / sizeof(Page));
    ends.bar = reinterpret_cast<uint8_t*>(bar_.data());
    ends.memory = &table_;
    ends.clock = &clock_;
    auto end = std::make_unique<End>(boxes_.get());
    in_ = &end->in();
    out_ = &end->out();
    apart_id_ = &end->apart_id;
    ends.wire = std::move(end);
    memory_.resize(kPages);
    require(table_.add(
                {kIova, kPages * sizeof(Page), reinterpret_cast<uint8_t*>(memory_.data())}) == 0);
    std::memset(memory_[kWatched].bytes, 0x5A, sizeof(Page));
    require(model::Card::create(config, std::move(ends), &card_) == 0);
  }

  static void require(bool condition) {
    if (!condition) {
      std::abort();
    }
  }
  uint32_t* word(uint32_t offset) { return reinterpret_cast<uint32_t*>(bar_.data()) + offset / 4; }
  [[nodiscard]] size_t bar_words() const { return bar_.size() * sizeof(Page) / 4; }
  void write(uint32_t offset, uint32_t value) {
    __atomic_store_n(word(offset), value, __ATOMIC_RELEASE);
  }
  void step(uint32_t times) {
    for (; times > 0; --times) {
      clock_.advance_ns(50'000);
      card_->step();
    }
  }
  /// Steps the card as a host does that waits for messages.
  void look(uint32_t times) {
    for (; times > 0; --times) {
      card_->step_to_receive();
    }
  }
  void drop_sent() {
    for (int i = 2; i < 4; ++i) {
      for (const model::InFrame* f = boxes_[i].reader.peek(); f != nullptr;
           f = boxes_[i].reader.peek()) {
        boxes_[i].reader.pop(f);
      }
      boxes_[i].reader.release();
    }
  }

  /// Takes the requests and messages that the card has sent.
  std::vector<model::Frame> take_sent() { return take_frames(boxes_[2].reader); }

  /// Answers to a source have a ring of their own from now on, as those to a second partner.
  void answer_apart(uint32_t source) { *apart_id_ = source; }
  /// Takes those answers as frames.
  std::vector<model::Frame> take_apart_frames() { return take_frames(boxes_[4].reader); }

  /// Takes the card's answers as frames.
  std::vector<model::Frame> take_answer_frames() { return take_frames(boxes_[3].reader); }

  /// Takes the card's answers: acks as they travel; other responses as 0xFF and their status.
  std::vector<uint16_t> take_answers() {
    std::vector<uint16_t> all;
    model::FrameReader& reader = boxes_[3].reader;
    for (const model::InFrame* f = reader.peek(); f != nullptr; f = reader.peek()) {
      const bool acks = f->type == model::FrameType::kAcks;
      const size_t before = all.size();
      all.resize(before + (acks ? f->length / sizeof(uint16_t) : 1));
      if (acks) {
        std::memcpy(all.data() + before, f->payload(), f->length);
      } else {
        all.back() = static_cast<uint16_t>(0xFF00 | f->op);
      }
      reader.pop(f);
    }
    reader.release();
    return all;
  }

  /// log2 of a ring's completions. The barrier ring has some for slots, too.
  static constexpr uint32_t clog2(uint32_t ring) { return ring == 5 ? kLog2 + 1 : kLog2; }
  /// Bus address and bytes of a ring's submission page.
  static uint64_t ring_iova(uint32_t ring) { return kIova + (2 * ring) * sizeof(Page); }
  uint8_t* completions(uint32_t ring) { return memory_[2ul * ring + 1].bytes; }
  uint8_t* ring(uint32_t ring) { return memory_[2ul * ring].bytes; }
  uint8_t* buffers() { return memory_[kBuffers].bytes; }
  /// A message of one segment to this card.
  static model::Frame plain_message(uint32_t source, uint16_t length_bytes) {
    model::Frame frame{};
    frame.type = model::FrameType::kMessage;
    frame.source = source;
    frame.dest = kId;
    frame.length = length_bytes;
    frame.place = 9;
    frame.segments = 1;
    frame.ssize = 256;
    return frame;
  }
  /// Where the host's memory ends.
  static uint64_t end_iova() { return kIova + kPages * sizeof(Page); }
  static uint64_t buffers_iova() { return kIova + kBuffers * sizeof(Page); }

  /// Resets the card, sets the map, and starts all rings of queue pair 0.
  void start_all() {
    namespace qp = regs::qp;
    write(regs::id::response_timeout_us(), 1000);
    write(regs::id::receive_timeout_us(), 2000);
    write(regs::id::qp_dest_id(0), kId);
    write(regs::rx_map::dest_id(0), kId);
    write(regs::rx_map::mbox_lo(0), ~0u);
    write(regs::rx_map::mbox_hi(0), ~0u);
    write(regs::rx_map::entry(0), 7);
    write(regs::rx_map::apply(), 1);
    write(regs::id::gen_req(), 1);
    step(40);
    for (uint32_t r = 0; r < regs::kRingsPerQp; ++r) {
      const bool free = r == 2 || r == 6;
      write(qp::ring_base_lo(0, r), static_cast<uint32_t>(ring_iova(r)));
      write(qp::ring_base_hi(0, r), static_cast<uint32_t>(ring_iova(r) >> 32));
      write(qp::ring_cbase_lo(0, r), static_cast<uint32_t>(ring_iova(r) + sizeof(Page)));
      write(qp::ring_cbase_hi(0, r), static_cast<uint32_t>((ring_iova(r) + sizeof(Page)) >> 32));
      write(qp::ring_size(0, r), kLog2 | clog2(r) << 8);
      write(qp::ring_filter(0, r), r & 3);
      write(qp::ring_source(0, r), 2);
      write(qp::ring_format(0, r), qp::RingFormat::push.put(r == 0 && push_ ? 1 : 0));
      write(qp::tail(0, r), free ? 1u << kLog2 : 0);
      write(qp::ring_control(0, r), 1 | 1u << 16);
    }
    namespace w = regs::window;
    write(w::size_lo(0, 0), sizeof(Page));
    write(w::bus_lo(0, 0), static_cast<uint32_t>(buffers_iova()));
    write(w::bus_hi(0, 0), static_cast<uint32_t>(buffers_iova() >> 32));
    write(w::control(0, 0), 1 | 15u << 16);
    step(40);
  }
  /// Posts buffers to the shared queue, and one entry to each dedicated queue.
  void post_receive() {
    for (uint32_t i = 0; i < 8; ++i) {
      const uint64_t addr = buffers_iova() + i * sizeof(Page);
      std::memcpy(ring(1) + 8 * i, &addr, 8);
    }
    write(regs::qp::tail(0, 1), 8);
    for (uint32_t r = 8; r < 16; ++r) {
      const regs::DedicatedDesc desc{buffers_iova() + 8 * sizeof(Page), 512, 0};
      std::memcpy(ring(r), &desc, sizeof(desc));
      write(regs::qp::tail(0, r), 1);
    }
  }

  /// Sends a frame to the card. @param honest publish its true length; otherwise the length in its
  /// header.
  bool send(const model::Frame& header, const uint8_t* payload, size_t len, bool answer,
            bool honest) {
    Box& box = boxes_[answer ? 1 : 0];
    const uint32_t bytes = model::frame_bytes(static_cast<uint32_t>(len));
    model::Frame* frame = box.writer.reserve(bytes);
    if (frame == nullptr) {
      return false;
    }
    std::memcpy(reinterpret_cast<uint8_t*>(frame) + 4,
                reinterpret_cast<const uint8_t*>(&header) + 4, sizeof(header) - 4);
    if (len > 0) {
      std::memcpy(frame->payload(), payload, len);
    }
    box.writer.commit(frame, honest || header.bytes == 0 ? bytes : header.bytes);
    if (!honest && header.bytes != bytes) {
      // The writer's own count is wrong from here on, so it can send no more frames.
      frame->bytes = header.bytes;
      return false;
    }
    box.writer.publish();
    return true;
  }

  /// The ring of requests toward the card, as its writer may change it at any time.
  uint8_t* ring_to_card() { return boxes_[0].memory.data()->bytes; }

  /// The ring of the card's answers, from its first frame on.
  const uint8_t* answers() { return boxes_[3].memory.data()->bytes; }

  /// Checks that the watched page is unchanged.
  void check() {
    for (const uint8_t byte : memory_[kWatched].bytes) {
      require(byte == 0x5A);
    }
  }
  model::Card& card() { return *card_; }
  /// The source of frames to the card.
  model::Inbound& in() { return *in_; }
  /// The destination of frames of the card.
  model::Outbound& out() { return *out_; }

 private:
  struct alignas(4096) Page {
    uint8_t bytes[4096];
  };
  static constexpr uint64_t kIova = 1ull << 40;
  static constexpr size_t kBuffers = 32;
  static constexpr size_t kWatched = kBuffers + 10;
  static constexpr size_t kPages = kWatched + 1;
  static constexpr uint32_t kRingBytes = 16384;

  struct Box {
    model::FrameRingShared shared;
    std::vector<Page> memory = std::vector<Page>(kRingBytes / sizeof(Page));
    model::FrameWriter writer{&shared, reinterpret_cast<uint8_t*>(memory.data()), kRingBytes};
    model::FrameReader reader{&shared, reinterpret_cast<uint8_t*>(memory.data()), kRingBytes};
  };
  class End final : public model::Wire {
   public:
    explicit End(Box* b)
        : out_{&b[2].writer, &b[3].writer},
          apart_{&b[2].writer, &b[4].writer},
          in_{&b[0].reader, &b[1].reader} {
      inbound_ = {&in_, 1};
    }
    model::Outbound* route(uint32_t dest_id) override {
      return dest_id == apart_id ? &apart_ : &out_;
    }
    [[nodiscard]] bool link_up() const override { return true; }
    model::Inbound& in() { return in_; }
    model::Outbound& out() { return out_; }

    uint32_t apart_id = 0;  // 0: none

   private:
    model::Outbound out_;
    model::Outbound apart_;
    model::Inbound in_;
  };

  static std::vector<model::Frame> take_frames(model::FrameReader& reader) {
    std::vector<model::Frame> all;
    for (const model::InFrame* f = reader.peek(); f != nullptr; f = reader.peek()) {
      all.push_back(*f);
      reader.pop(f);
    }
    reader.release();
    return all;
  }

  std::unique_ptr<Box[]> boxes_;
  bool push_;
  std::vector<Page> bar_;
  std::vector<Page> memory_;
  model::DmaTable table_;
  ManualClock clock_;
  model::Inbound* in_ = nullptr;
  model::Outbound* out_ = nullptr;
  uint32_t* apart_id_ = nullptr;
  std::unique_ptr<model::Card> card_;
};

}  // namespace rio::test
