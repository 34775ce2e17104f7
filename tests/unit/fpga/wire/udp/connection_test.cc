#include "fpga/wire/udp/connection.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {
namespace {

class Taken final : public Intake {
 public:
  bool take(UnitKind lane, std::span<const uint8_t> unit) override {
    if (!is_open) {
      return false;
    }
    all += (lane == UnitKind::kRequests ? "q" : "r") +
           std::string(reinterpret_cast<const char*>(unit.data()), unit.size());
    return true;
  }
  std::string all;
  bool is_open = true;
};

class UdpSession : public testing::Test {
 protected:
  static Agreed agreed() {
    Agreed out;
    out.session = 1;
    out.their_session = 1;
    out.datagram_bytes = kDatagramMin;
    return out;
  }
  static void put(Connection& to, UnitKind lane, const std::string& text) {
    const std::span<uint8_t> room = to.begin_unit(lane);
    ASSERT_FALSE(room.empty());
    std::copy(text.begin(), text.end(), room.begin());
    to.end_unit(lane, text.size());
  }
  static std::vector<uint8_t> sent(Connection& from) {
    std::vector<uint8_t> out(from.datagram_bytes());
    out.resize(from.send(1, out));
    return out;
  }
  static std::vector<uint8_t> answered(Connection& from) {
    std::vector<uint8_t> out(kHeaderBytes + kTagBytes);
    out.resize(from.answer(out, false));
    return out;
  }

  Taken left_;
  Taken right_;
  Connection a_{agreed(), &left_, 0};
  Connection b_{agreed(), &right_, 0};
};

TEST_F(UdpSession, BothLanesShareADatagramAndResponsesAreTakenFirst) {
  put(a_, UnitKind::kRequests, "ping");
  put(a_, UnitKind::kResponses, "ack");
  std::vector<uint8_t> one = sent(a_);
  EXPECT_EQ(one.size(), kHeaderBytes + 7);
  EXPECT_TRUE(sent(a_).empty());
  ASSERT_EQ(b_.take(one, 2), 0);
  EXPECT_EQ(right_.all, "rackqping");
  EXPECT_FALSE(b_.owes_answer(false));
  EXPECT_TRUE(b_.owes_answer(true));
  std::vector<uint8_t> answer = answered(b_);
  EXPECT_FALSE(b_.owes_answer(true));
  EXPECT_FALSE(a_.all_there());
  ASSERT_EQ(a_.take(answer, 3), 0);
  EXPECT_TRUE(a_.all_there());
}

TEST_F(UdpSession, UnitsThatDoNotFitBesideTheOtherLaneFollow) {
  put(a_, UnitKind::kRequests, std::string(a_.unit_bytes(), 'x'));
  put(a_, UnitKind::kResponses, "ack");
  EXPECT_EQ(sent(a_).size(), kHeaderBytes + 3);
  EXPECT_EQ(sent(a_).size(), a_.datagram_bytes());
}

TEST_F(UdpSession, UnitsWithoutRoomAreKeptAndOfferedAgain) {
  right_.is_open = false;
  put(a_, UnitKind::kRequests, "1");
  std::vector<uint8_t> one = sent(a_);
  ASSERT_EQ(b_.take(one, 2), 0);
  EXPECT_TRUE(b_.owes_answer(false));
  EXPECT_TRUE(b_.waits());
  EXPECT_FALSE(b_.offer_again());
  ASSERT_EQ(answered(b_).size(), kHeaderBytes);
  right_.is_open = true;
  EXPECT_TRUE(b_.offer_again());
  EXPECT_TRUE(b_.owes_answer(false));  // the peer may be waiting for the room
  EXPECT_EQ(right_.all, "q1");
  EXPECT_FALSE(b_.waits());
}

TEST_F(UdpSession, RepeatedUnitsAreTakenOnceAndAnswered) {
  put(a_, UnitKind::kRequests, "1");
  const std::vector<uint8_t> one = sent(a_);
  for (int i = 0; i < 3; ++i) {
    std::vector<uint8_t> copy = one;
    ASSERT_EQ(b_.take(copy, 2), 0);
  }
  EXPECT_EQ(right_.all, "q1");
  EXPECT_TRUE(b_.owes_answer(false));
}

TEST_F(UdpSession, AcknowledgingUnsentUnitsBreaksTheRules) {
  Datagram lie;
  lie.heard[0].next = 5;
  std::vector<uint8_t> bytes(kHeaderBytes);
  ASSERT_EQ(encode(lie, bytes), bytes.size());
  EXPECT_EQ(a_.take(bytes, 2), -EPROTO);
  Datagram beyond;
  const uint8_t byte = 1;
  beyond.parts[0] = {100'000, {&byte, 1}};
  bytes.resize(kHeaderBytes + 1);
  ASSERT_EQ(encode(beyond, bytes), bytes.size());
  EXPECT_EQ(a_.take(bytes, 2), -EPROTO);
}

TEST_F(UdpSession, AQuestionIsAnsweredAtOnce) {
  std::vector<uint8_t> question(kHeaderBytes + kTagBytes);
  question.resize(a_.answer(question, true));
  ASSERT_EQ(b_.take(question, 9), 0);
  EXPECT_TRUE(b_.owes_answer(false));
  EXPECT_EQ(b_.heard_ns(), 9u);
}

TEST(UdpSealedSession, DoesNotTakeTheSameDatagramTwice) {
  Taken left;
  Taken right;
  Agreed agreed;
  agreed.datagram_bytes = kDatagramMin;
  agreed.sealed = true;
  agreed.out_key = {1};
  agreed.in_key = {2};
  Connection a(agreed, &left, 0);
  std::swap(agreed.out_key, agreed.in_key);
  Connection b(agreed, &right, 0);
  std::vector<uint8_t> question(kHeaderBytes + kTagBytes);
  ASSERT_EQ(a.answer(question, true), question.size());
  std::vector<uint8_t> again = question;
  std::vector<uint8_t> back = question;
  EXPECT_EQ(b.take(question, 1), 0);
  EXPECT_EQ(b.take(again, 1), -EALREADY);
  EXPECT_EQ(a.take(back, 1), -EACCES);  // our own datagram, sent back
}

}  // namespace
}  // namespace rio::wire::udp
