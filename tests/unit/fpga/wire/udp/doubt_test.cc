#include "fpga/wire/udp/contact.hpp"

#include <gtest/gtest.h>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kMs = 1'000'000;

class UdpDoubt : public testing::Test {
 protected:
  UdpDoubt() {
    ours_.challenge = {10};
    ours_.session = 100;
    theirs_.challenge = {20};
    theirs_.session = 200;
    theirs_.hear(ours_.say(kKindHello, self_, 0), kDatagramMin);
    ours_.hear(theirs_.say(kKindAccept, peer_, kDatagramMin), kDatagramMin);
  }
  [[nodiscard]] Greeting asked(uint64_t now_ns) {
    Greeting out;
    EXPECT_EQ(doubt_.ask(now_ns, ours_, self_, &out), 0);
    return out;
  }
  [[nodiscard]] static Greeting answer(const Greeting& question) {
    Greeting out;
    out.kind = kKindFarewell;
    out.to_session = question.session;
    out.echo = question.challenge;
    out.reason = Reason::kUnknown;
    return out;
  }

  Self self_{{1}, 0, 1, 0, {}};
  Self peer_{{2}, 0, 1, 0, {}};
  Attempt ours_;
  Attempt theirs_;
  Doubt doubt_;
};

TEST_F(UdpDoubt, AsksAboutTheConnectionWhichAnswers) {
  doubt_.begin(1 * kMs, 2 * kMs);
  const Greeting question = asked(2 * kMs);
  EXPECT_TRUE(knows(theirs_, question));
  EXPECT_TRUE(doubt_.answered_by(answer(question), ours_));
  doubt_.end();
  EXPECT_FALSE(doubt_.answered_by(answer(question), ours_));
}

TEST_F(UdpDoubt, OtherConnectionsAreUnknown) {
  doubt_.begin(1 * kMs, 2 * kMs);
  const Greeting question = asked(2 * kMs);
  Attempt other = theirs_;
  other.challenge[5] ^= 1;
  EXPECT_FALSE(knows(other, question));
  other = theirs_;
  other.session ^= 1;
  EXPECT_FALSE(knows(other, question));
  other = theirs_;
  other.they->session ^= 1;
  EXPECT_FALSE(knows(other, question));
  other = theirs_;
  other.they.reset();
  EXPECT_FALSE(knows(other, question));
}

TEST_F(UdpDoubt, IgnoresAnswersToOtherQuestions) {
  doubt_.begin(1 * kMs, 2 * kMs);
  Greeting nothing = answer({});
  nothing.to_session = ours_.session;
  EXPECT_FALSE(doubt_.answered_by(nothing, ours_)) << "nothing was asked";
  const Greeting old = asked(2 * kMs);
  doubt_.end();
  doubt_.begin(3 * kMs, 4 * kMs);
  EXPECT_FALSE(doubt_.answered_by(answer(old), ours_)) << "nothing was asked this time";
  const Greeting question = asked(4 * kMs);
  EXPECT_FALSE(doubt_.answered_by(answer(old), ours_));
  Greeting no = answer(question);
  no.reason = Reason::kLeaving;
  EXPECT_FALSE(doubt_.answered_by(no, ours_));
  no = answer(question);
  no.echo = ours_.challenge;
  EXPECT_FALSE(doubt_.answered_by(no, ours_));
}

TEST_F(UdpDoubt, AsksLessAndLessOftenWithOneChallenge) {
  EXPECT_EQ(doubt_.due_ns(), UINT64_MAX);
  doubt_.begin(1 * kMs, 5 * kMs);
  doubt_.begin(2 * kMs, 3 * kMs);  // ignored: doubt has begun already
  EXPECT_EQ(doubt_.since_ns(), 1 * kMs);
  EXPECT_EQ(doubt_.due_ns(), 5 * kMs);
  const Greeting first = asked(5 * kMs);
  uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t now_ns = doubt_.due_ns();
    EXPECT_EQ(asked(now_ns).challenge, first.challenge);
    EXPECT_GE(doubt_.due_ns() - now_ns, before);
    before = doubt_.due_ns() - now_ns;
  }
  EXPECT_EQ(before, 1000 * kMs);
}

}  // namespace
}  // namespace rio::wire::udp
