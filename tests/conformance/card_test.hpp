/// @file
/// Base of the conformance tests: a reset card, buffers with red zones, and a remote node that the
/// test plays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/conformance/card_under_test.hpp"
#include "tests/conformance/test_ring.hpp"

namespace rio::test {

inline constexpr uint32_t kOwnId =
    0x0101;  ///< of queue pair 0; queue pair 1 has the next one, and so on
inline constexpr uint32_t kRemoteId = 0x0202;  ///< of the test's node
inline constexpr uint32_t kResponseUs = 10'000;
inline constexpr uint32_t kReceiveUs = 20'000;
inline constexpr uint32_t kSsize256 = 14;

/// The latest end of a time-out or rest.
[[nodiscard]] constexpr uint32_t latest_us(uint32_t us) {
  return us + us / 16 + 1000;
}
/// The latest end of a letter's rest, which has to outlast a late receive time-out itself.
inline constexpr uint32_t kRestUs = latest_us(latest_us(2 * kResponseUs));

/// Bytes that identify their position.
[[nodiscard]] inline std::vector<uint8_t> pattern(size_t len_bytes, uint32_t seed = 1) {
  std::vector<uint8_t> bytes(len_bytes);
  uint32_t x = seed * 2654435761u + 1;
  for (uint8_t& byte : bytes) {
    x = x * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(x >> 24);
  }
  return bytes;
}

/// A buffer between red zones that the card can reach, too, so that writes beyond the buffer show.
class Buffer {
 public:
  static constexpr size_t kZone = 4096;
  static constexpr uint8_t kRed = 0xA5;

  Buffer(FunctionUnderTest& card, size_t len_bytes, size_t offset_bytes = 0)
      : memory_(card.map(2 * kZone + offset_bytes + len_bytes)),
        begin_(kZone + offset_bytes),
        len_bytes_(len_bytes) {
    std::memset(memory_.va, kRed, memory_.len_bytes);
  }
  [[nodiscard]] uint64_t iova() const { return memory_.iova + begin_; }
  [[nodiscard]] uint8_t* va() const { return memory_.va + begin_; }
  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }
  [[nodiscard]] const Memory& memory() const { return memory_; }
  void fill(const std::vector<uint8_t>& bytes) const {
    std::memcpy(va(), bytes.data(), bytes.size());
  }
  [[nodiscard]] std::vector<uint8_t> bytes(size_t len) const { return {va(), va() + len}; }
  /// Number of bytes outside of the first `used` that were touched.
  [[nodiscard]] size_t touched_outside(size_t used) const {
    uint8_t* const end = memory_.va + memory_.len_bytes;
    const auto red = [](uint8_t byte) { return byte == kRed; };
    const auto all = static_cast<size_t>(begin_ + static_cast<size_t>(end - va()) - used);
    return all - static_cast<size_t>(std::count_if(memory_.va, va(), red)) -
           static_cast<size_t>(std::count_if(va() + used, end, red));
  }

 private:
  Memory memory_;
  size_t begin_;
  size_t len_bytes_;
};

class CardTest : public testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override { make({}); }

  /// Makes another card than the default one, and resets it.
  void make(const CardOptions& options) {
    tx_.reset();
    shared_.reset();
    events_.reset();
    options_ = options;
    card_ = GetParam().make(options);
    card_->run();
    reset();
  }
  CardUnderTest& card() { return *card_; }

  /// Writes identity, times and receive map, then does the handshake.
  void reset(uint32_t retry_limit = 0) {
    namespace id = regs::id;
    namespace map = regs::rx_map;
    card_->write32(id::response_timeout_us(), kResponseUs);
    card_->write32(id::receive_timeout_us(), kReceiveUs);
    card_->write32(id::retry_limit(), retry_limit);
    card_->write32(id::retry_delay_us(), 1);
    for (uint32_t q = 0; q < options_.queue_pairs; ++q) {
      card_->write32(id::qp_dest_id(q), kOwnId + q);
      map_entry(q, kOwnId + q, ~0ull, q);
    }
    card_->write32(id::gen_req(), card_->read32(id::gen_ack()) + 1);
    card_->run();
    ASSERT_EQ(card_->read32(id::gen_ack()), card_->read32(id::gen_req()));
    apply_map();
  }
  void map_entry(uint32_t i, uint32_t dest_id, uint64_t mboxes, uint32_t qp, bool doorbells = true,
                 bool requests = true) {
    namespace map = regs::rx_map;
    card_->write32(map::dest_id(i), dest_id);
    card_->write32(map::mbox_lo(i), static_cast<uint32_t>(mboxes));
    card_->write32(map::mbox_hi(i), static_cast<uint32_t>(mboxes >> 32));
    card_->write32(map::entry(i), map::Entry::valid.put(1) | map::Entry::doorbells.put(doorbells) |
                                      map::Entry::requests.put(requests) | map::Entry::qp.put(qp));
  }
  void apply_map() {
    namespace map = regs::rx_map;
    card_->write32(map::apply(), card_->read32(map::applied()) + 1);
    card_->run();
    ASSERT_EQ(card_->read32(map::applied()), card_->read32(map::apply()));
  }

  TestRing& start(std::unique_ptr<TestRing>& ring, regs::Ring number, RingConfig config = {}) {
    config.ring = static_cast<uint32_t>(number);
    ring = std::make_unique<TestRing>(*card_, config);
    ring->start();
    return *ring;
  }
  TestRing& tx(RingConfig config = {}) { return start(tx_, regs::Ring::kTx, config); }
  TestRing& shared(RingConfig config = {}) { return start(shared_, regs::Ring::kShared, config); }
  TestRing& events(RingConfig config = {}) { return start(events_, regs::Ring::kEvent, config); }

  /// A descriptor of a message by address to the remote node.
  static regs::TxDesc message(uint32_t mbox, uint32_t length, uint64_t addr, uint32_t cookie = 1,
                              uint32_t ssize = kSsize256, uint32_t more = 0) {
    using C = regs::tx_desc::Control;
    return {C::ssize.put(ssize) | C::mbox.put(mbox) | more, kRemoteId, cookie, length, addr, 0};
  }
  void post_shared(TestRing& ring, const Buffer& buffer) {
    ring.put(regs::SharedDesc{buffer.iova()});
    ring.post();
  }

  /// Lets the card work. @return everything that it has sent since the last call.
  std::vector<Packet> sent() {
    card_->run();
    std::vector<Packet> all;
    for (Packet packet; card_->receive(&packet);) {
      all.push_back(packet);
    }
    return all;
  }
  /// Answers a segment of the card, as the remote node.
  void answer(const Packet& segment, Answer answer = Answer::kDone) {
    Packet reply = segment;
    reply.kind = Packet::kSegmentAnswer;
    reply.source = segment.dest;
    reply.dest = segment.source;
    reply.answer = answer;
    reply.length = 0;
    reply.data.clear();
    push(reply);
  }
  void answer_all(const std::vector<Packet>& segments, Answer with = Answer::kDone) {
    for (const Packet& segment : segments) {
      answer(segment, with);
    }
  }
  /// Answers a doorbell, request or maintenance request, as the remote node.
  void respond(const Packet& request, Answer with, std::vector<uint8_t> data = {}) {
    Packet reply;
    reply.kind = request.kind == Packet::kMaintRequest ? Packet::kMaintResponse : Packet::kResponse;
    reply.source = request.dest;
    reply.dest = request.source;
    reply.tid = request.tid;
    reply.answer = with;
    reply.data = std::move(data);
    push(reply);
  }

  /// Segment `k` of a message to the card.
  static Packet segment(uint8_t mbox, uint8_t letter, const std::vector<uint8_t>& message,
                        uint32_t k = 0, uint16_t ssize = 256) {
    Packet packet;
    packet.source = kRemoteId;
    packet.dest = kOwnId;
    packet.mbox = mbox;
    packet.letter = letter;
    packet.segment = static_cast<uint8_t>(k);
    packet.segments = static_cast<uint8_t>((message.size() + ssize - 1) / ssize);
    packet.ssize = ssize;
    const size_t from = std::min<size_t>(k * ssize, message.size());
    const size_t to = std::min<size_t>(from + ssize, message.size());
    packet.data.assign(message.begin() + static_cast<ptrdiff_t>(from),
                       message.begin() + static_cast<ptrdiff_t>(to));
    return packet;
  }
  /// Opens an inbound window of queue pair 0 onto a buffer.
  void open_window(uint32_t i, const Buffer& buffer, uint64_t rio, uint64_t size, uint32_t rights,
                   uint32_t source = 0, uint32_t mask = 0, uint32_t key = 0) {
    namespace w = regs::window;
    const auto wide = [&](uint32_t lo, uint32_t hi, uint64_t value) {
      card().write32(lo, static_cast<uint32_t>(value));
      card().write32(hi, static_cast<uint32_t>(value >> 32));
    };
    wide(w::rio_lo(0, i), w::rio_hi(0, i), rio);
    wide(w::size_lo(0, i), w::size_hi(0, i), size);
    wide(w::bus_lo(0, i), w::bus_hi(0, i), buffer.iova());
    card().write32(w::source(0, i), source);
    card().write32(w::source_mask(0, i), mask);
    card().write32(w::key(0, i), key);
    const uint32_t control =
        w::Control::gen.put(++window_gen_) | w::Control::enable.put(1) | rights;
    card().write32(w::control(0, i), control);
    card().run();
    ASSERT_EQ(card().read32(w::status(0, i)), control);
  }
  /// Asks for the end of a window, without waiting. @return the STATUS that says that it is closed.
  uint32_t close_window(uint32_t i) {
    const uint32_t control = regs::window::Control::gen.put(++window_gen_);
    card().write32(regs::window::control(0, i), control);
    return control;
  }
  static Packet request(regs::DmaOp op, uint64_t address, uint32_t length,
                        std::vector<uint8_t> data = {}) {
    Packet packet;
    packet.kind = Packet::kRequest;
    packet.source = kRemoteId;
    packet.dest = kOwnId;
    packet.op = static_cast<uint8_t>(op);
    packet.tid = 77;
    packet.address = address;
    packet.length = static_cast<uint16_t>(length);
    packet.data = std::move(data);
    return packet;
  }
  static Packet doorbell(uint16_t info, uint8_t tid) {
    Packet packet;
    packet.kind = Packet::kDoorbell;
    packet.source = kRemoteId;
    packet.dest = kOwnId;
    packet.tid = tid;
    packet.address = info;
    return packet;
  }
  /// Sends a packet; if the card's port is full, lets it work first.
  void push(const Packet& packet) {
    if (!card_->send(packet)) {
      card_->run();
      ASSERT_TRUE(card_->send(packet));
    }
  }
  /// Sends one packet to the card and returns its answer. RETRY counts only if it stays: a doorbell
  /// of the host may still be on its way to the card.
  std::optional<Answer> exchange(const Packet& packet) {
    std::vector<Packet> replies;
    for (int i = 0; i < 12; ++i) {
      EXPECT_TRUE(card_->send(packet));
      replies = sent();
      EXPECT_LE(replies.size(), 1u);
      if (replies.empty() || replies[0].answer != Answer::kRetry) {
        break;
      }
    }
    return replies.empty() ? std::optional<Answer>() : replies[0].answer;
  }

  CardOptions options_;
  std::unique_ptr<CardUnderTest> card_;
  std::unique_ptr<TestRing> tx_;
  std::unique_ptr<TestRing> shared_;
  std::unique_ptr<TestRing> events_;
  uint32_t window_gen_ = 0;
};

#define RIO_CONFORMANCE(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Card, Suite, testing::ValuesIn(implementations()), \
                           [](const auto& which) { return which.param.name; })

}  // namespace rio::test
