// Messages whose bytes stay in their sender's memory, which the receiver has mapped: a frame
// carries their address.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "fpga/model/copy.hpp"
#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

using Control = regs::tx_desc::Control;
using model::Answer;
using model::Frame;
using model::FrameType;

constexpr uint32_t kPeer = 2;
constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kUntilTimeOut = 600;  // steps

/// Without dedicated queues for mailbox 0 its messages are plain.
void start(FuzzCard& card) {
  card.start_all();
  for (const uint32_t ring : {8u, 12u}) {
    card.write(regs::qp::ring_control(0, ring), 2u << 16);
  }
  card.step(40);
  card.post_receive();
}

class Sends : public testing::Test {
 protected:
  Sends() {
    start(card_);
    card_.out().mapped = &windows_;
    card_.out().takes_bytes_behind = true;
    map(2 * kPageBytes);
    post({8});  // the first message to a destination takes no short way
    card_.card().step();
    answer(only_frame(), Answer::kDone);
    card_.step(2);
  }
  [[nodiscard]] uint64_t begin() { return reinterpret_cast<uintptr_t>(card_.buffers()); }
  /// The partner has mapped so many bytes of the buffers.
  void map(uint64_t len_bytes) {
    windows_.clear();
    windows_.add({begin(), len_bytes, card_.buffers()});
  }
  void post(std::initializer_list<uint32_t> lengths, uint32_t order = 0) {
    for (const uint32_t length : lengths) {
      regs::TxDesc desc{};
      desc.control = Control::ssize.put(14) | Control::order.put(order);
      desc.dest_id = kPeer;
      desc.cookie = tail_;
      desc.length = length;
      desc.addr = FuzzCard::buffers_iova();
      std::memcpy(card_.ring(0) + tail_ * sizeof(desc), &desc, sizeof(desc));
      ++tail_;
    }
    card_.write(regs::qp::tail(0, 0), tail_);
  }
  void answer(const Frame& sent, Answer answer) {
    Frame frame{};
    frame.type = FrameType::kAcks;
    frame.source = kPeer;
    frame.dest = FuzzCard::kId;
    frame.length = sizeof(model::Ack);
    const model::Ack ack = model::Ack::of(sent.place, 0, answer);
    EXPECT_TRUE(card_.send(frame, reinterpret_cast<const uint8_t*>(&ack), sizeof(ack), true, true));
  }
  Frame only_frame() {
    const std::vector<Frame> sent = card_.take_sent();
    EXPECT_EQ(sent.size(), 1u);
    return sent.empty() ? Frame{} : sent[0];
  }
  /// Status of the message posted last, after those before it.
  [[nodiscard]] uint32_t last_status() {
    regs::TxCpl cpl;
    std::memcpy(&cpl, card_.completions(0) + (tail_ - 1) * sizeof(cpl), sizeof(cpl));
    return cpl.status;
  }

  FuzzCard card_{false, 0, 1};
  model::Windows windows_;
  uint32_t tail_ = 0;
};

TEST_F(Sends, AnAddressInPlaceOfTheBytes) {
  for (const bool kicked : {false, true}) {
    post({1024});
    if (kicked) {
      card_.card().step_to_send();
    } else {
      card_.card().step();
    }
    const Frame frame = only_frame();
    EXPECT_EQ(frame.type, FrameType::kMapped);
    EXPECT_EQ(frame.bytes, sizeof(Frame));
    EXPECT_EQ(frame.address, begin());
    EXPECT_EQ(frame.length, 1024u);
    EXPECT_EQ(frame.segments, 4u);
    EXPECT_EQ(frame.ssize, 256u);
    answer(frame, Answer::kDone);
    card_.step(2);
    EXPECT_EQ(last_status(), 1u << 31);
  }
}

TEST_F(Sends, BytesThatThePartnerHasNotMapped) {
  map(1023);
  post({1024});
  card_.card().step_to_send();
  EXPECT_EQ(only_frame().type, FrameType::kMessage);
  windows_.clear();
  post({1024});
  card_.card().step_to_send();
  EXPECT_EQ(only_frame().type, FrameType::kMessage);
  map(kPageBytes);
  post({1023});
  card_.card().step_to_send();
  EXPECT_EQ(only_frame().type, FrameType::kMessage) << "short";
}

TEST_F(Sends, TheBytesAfterARetry) {
  post({1024});
  card_.card().step_to_send();
  answer(only_frame(), Answer::kRetry);
  card_.step(40);
  const Frame again = only_frame();
  EXPECT_EQ(again.type, FrameType::kMessage);
  answer(again, Answer::kDone);
  card_.step(2);
  EXPECT_EQ(last_status(), 1u << 31 | 1u << 8);
}

/// The host may write to the memory of a message that has ended.
TEST_F(Sends, ARevocationOfWhatEndsWithoutAnAnswer) {
  post({1024});
  card_.card().step_to_send();
  card_.step(kUntilTimeOut);
  EXPECT_EQ(last_status(), static_cast<uint32_t>(regs::Status::kResponseTimeout) | 1u << 31);
  EXPECT_EQ(only_frame().type, FrameType::kRevoked);
  post({1100, 1200});
  card_.card().step();
  card_.step(kUntilTimeOut);
  EXPECT_EQ(only_frame().type, FrameType::kRevoked) << "a run";
}

TEST_F(Sends, NoRevocationOfALaterMessageOfTheSameLetter) {
  post({1024});
  card_.card().step_to_send();
  const Frame first = only_frame();
  answer(first, Answer::kDone);
  card_.step(2);
  windows_.clear();
  post({1024});
  card_.card().step_to_send();
  card_.step(kUntilTimeOut);
  EXPECT_EQ(last_status(), static_cast<uint32_t>(regs::Status::kResponseTimeout) | 1u << 31);
  const Frame second = only_frame();
  EXPECT_EQ(second.place, first.place);
  EXPECT_EQ(second.type, FrameType::kMessage);
}

TEST_F(Sends, RunsOfAddresses) {
  post({1100, 4096, 4096, 300});
  card_.card().step();
  const Frame frame = only_frame();
  EXPECT_EQ(frame.type, FrameType::kPull);
  EXPECT_EQ(frame.op, model::kBytesMapped);
  EXPECT_EQ(frame.length, 4 * sizeof(model::PullPart));
}

TEST_F(Sends, RunsOfBytesIfNotAllAreMapped) {
  map(1150);
  post({1100, 1200});
  card_.card().step();
  const Frame frame = only_frame();
  EXPECT_EQ(frame.type, FrameType::kPull);
  EXPECT_EQ(frame.op, model::kBytesBehind);
}

/// How a card takes frames.
enum class Takes : uint8_t { kExact, kPosted, kBySteps, kByLooks };

class Receives : public testing::TestWithParam<Takes> {
 protected:
  static constexpr uint64_t kFrom = 0x700000;
  static constexpr uint64_t kMapped = 3 * kPageBytes;

  Receives()
      : card_(GetParam() == Takes::kExact, GetParam() == Takes::kPosted ? 7 : 0, 1),
        memory_(static_cast<uint8_t*>(
            mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    start(card_);
    for (uint64_t i = 0; i < kMapped; ++i) {
      memory_[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
    }
    windows_.add({kFrom, kMapped, memory_});
    card_.in().windows = &windows_;
    std::memset(card_.buffers(), 0xEE, 4 * kPageBytes);
  }
  ~Receives() override { munmap(memory_, kMapped); }
  Receives(const Receives&) = delete;
  Receives& operator=(const Receives&) = delete;

  [[nodiscard]] static Frame frame_of(uint64_t from, uint32_t length_bytes) {
    Frame frame{};
    frame.type = FrameType::kMapped;
    frame.source = kPeer;
    frame.dest = FuzzCard::kId;
    frame.address = from;
    frame.length = static_cast<uint16_t>(length_bytes);
    frame.segments = static_cast<uint8_t>((length_bytes + 255) / 256);
    frame.ssize = 256;
    return frame;
  }
  void send(const Frame& frame) {
    if (GetParam() == Takes::kByLooks) {
      card_.card().step();
      card_.look(4);  // the message comes alone
    }
    ASSERT_TRUE(card_.send(frame, nullptr, 0, false, true));
    if (GetParam() == Takes::kByLooks) {
      card_.look(1);
    }
    card_.step(GetParam() == Takes::kPosted ? 200 : 2);
  }
  [[nodiscard]] static std::vector<uint16_t> answer_of(Answer answer) {
    return {static_cast<uint16_t>(model::Ack::of(0, 0, answer).word())};
  }
  /// Expects the next message at the shared queue, and DONE.
  void expect_message(uint64_t from, uint32_t length_bytes) {
    regs::SharedCpl cpl;
    std::memcpy(&cpl, card_.completions(1) + taken_ * sizeof(cpl), sizeof(cpl));
    EXPECT_EQ(cpl.status, 1u << 31) << from;
    EXPECT_EQ(cpl.length, model::padded(length_bytes));
    const uint8_t* const at = card_.buffers() + taken_ * kPageBytes;
    EXPECT_EQ(std::memcmp(at, memory_ + (from - kFrom), length_bytes), 0) << from;
    for (uint32_t i = length_bytes; i < (length_bytes + 255) / 256 * 256; ++i) {
      EXPECT_EQ(at[i], 0) << i;
    }
    ++taken_;
    EXPECT_EQ(card_.take_answers(), answer_of(Answer::kDone));
  }
  void expect_error(const char* what) {
    EXPECT_EQ(card_.take_answers(), answer_of(Answer::kError)) << what;
    expect_nothing();
  }
  void expect_nothing() {
    regs::SharedCpl cpl;
    std::memcpy(&cpl, card_.completions(1) + taken_ * sizeof(cpl), sizeof(cpl));
    EXPECT_EQ(cpl.status, 0u);
    EXPECT_TRUE(card_.take_answers().empty());
  }

  FuzzCard card_;
  uint8_t* const memory_;
  model::Windows windows_;
  uint32_t taken_ = 0;
};

TEST_P(Receives, TheBytesAtTheAddress) {
  for (const auto& [offset, length] : std::vector<std::pair<uint64_t, uint32_t>>{
           {0, 1000}, {4096, 257}, {8, 4096}, {kMapped - 4096, 4096}, {kMapped - 301, 301}}) {
    send(frame_of(kFrom + offset, length));
    expect_message(kFrom + offset, length);
  }
  card_.check();
}

TEST_P(Receives, NothingFromOutsideOfTheWindow) {
  for (const uint64_t from : {kFrom - 1, kFrom + kMapped - 999, uint64_t{0}, ~uint64_t{0} - 500,
                              reinterpret_cast<uint64_t>(memory_)}) {
    send(frame_of(from, 1000));
    expect_error("outside");
  }
  Frame frame = frame_of(kFrom, 1000);
  frame.segments = 3;
  send(frame);
  expect_error("it has four segments");
  frame = frame_of(kFrom, 4097);
  frame.segments = 16;
  send(frame);
  expect_error("too long");
  card_.in().windows = nullptr;
  send(frame_of(kFrom, 1000));
  expect_error("no windows");
  card_.check();
}

TEST_P(Receives, NothingThatWasRevoked) {
  Frame frame = frame_of(kFrom, 1000);
  frame.type = FrameType::kRevoked;
  send(frame);
  expect_nothing();
  send(frame_of(kFrom, 1000));
  expect_message(kFrom, 1000);
}

/// Revokes a frame when its bytes are first read.
struct Revoker {
  static void on_fault(int /*signal*/) {
    mprotect(memory, kPageBytes, PROT_READ | PROT_WRITE);
    __atomic_store_n(type, static_cast<uint8_t>(FrameType::kRevoked), __ATOMIC_SEQ_CST);
    revoked = true;
  }
  static inline uint8_t* memory;
  static inline uint8_t* type;
  static inline volatile bool revoked;
};

/// The sender's host has its memory back while the card copies from it.
TEST_P(Receives, NothingThatIsRevokedMeanwhile) {
  send(frame_of(kFrom + kPageBytes, 1000));  // the fast paths know the host's memory then
  expect_message(kFrom + kPageBytes, 1000);
  Revoker::memory = memory_;
  Revoker::type = card_.ring_to_card() + sizeof(Frame) + offsetof(Frame, type);
  Revoker::revoked = false;
  struct sigaction on_fault {};
  on_fault.sa_handler = Revoker::on_fault;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGSEGV, &on_fault, &before), 0);
  ASSERT_EQ(mprotect(memory_, kPageBytes, PROT_NONE), 0);
  send(frame_of(kFrom, 1000));
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_TRUE(Revoker::revoked);
  expect_nothing();
  send(frame_of(kFrom + 64, 1000));
  expect_message(kFrom + 64, 1000);
}

TEST_P(Receives, ARun) {
  const std::vector<model::PullPart> parts = {
      {kFrom + 64, 600, 0}, {kFrom + 4096, 4096, 0}, {kFrom + kMapped - 300, 301, 0}};
  Frame frame = frame_of(0, 0);
  frame.type = FrameType::kPull;
  frame.op = model::kBytesMapped;
  frame.segments = 3;
  frame.length = static_cast<uint16_t>(parts.size() * sizeof(model::PullPart));
  ASSERT_TRUE(
      card_.send(frame, reinterpret_cast<const uint8_t*>(parts.data()), frame.length, false, true));
  card_.step(GetParam() == Takes::kPosted ? 200 : 2);
  const std::vector<Frame> answers = card_.take_answer_frames();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].type, FrameType::kPulled);
  EXPECT_EQ(answers[0].ssize, 2u);
  EXPECT_EQ(answers[0].op, static_cast<uint8_t>(Answer::kError)) << "the third is not mapped";
  for (uint32_t i = 0; i < 2; ++i) {
    const uint8_t* const at = card_.buffers() + i * kPageBytes;
    EXPECT_EQ(std::memcmp(at, memory_ + (parts[i].address - kFrom), parts[i].length), 0);
  }
  card_.check();
}

INSTANTIATE_TEST_SUITE_P(Ways, Receives,
                         testing::Values(Takes::kExact, Takes::kPosted, Takes::kBySteps,
                                         Takes::kByLooks));

}  // namespace
}  // namespace rio::test
