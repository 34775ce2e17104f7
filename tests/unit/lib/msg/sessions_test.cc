// Sessions without a wire: messages of a peer, and the resulting state of its link.
#include "lib/msg/sessions.hpp"

#include "tests/unit/lib/msg/objects.hpp"

namespace rio::msg::test {
namespace {

constexpr uint32_t kPeer = 5;  // a destID below our own
constexpr uint32_t kInstance = 3;

class SessionsTest : public testing::Test {
 protected:
  bool hears(Kind kind, uint32_t key, uint32_t ours, uint32_t first = 0,
             uint32_t instance = kInstance) {
    return port_.sessions.on_message(port_.rails.first(), kPeer, kind,
                                     {kMagic, key, ours, first, instance, 0});
  }
  Link& link() { return *port_.peers.find_or_make(kPeer); }
  void begin_session(uint32_t key = 1000) {
    ASSERT_TRUE(hears(Kind::kHello, key, 0, 40));
    ASSERT_TRUE(hears(Kind::kWelcome, key, link().keys.local));
    ASSERT_EQ(link().state, LinkState::kUp);
  }

  Objects port_;
};

TEST_F(SessionsTest, AHelloIsAnsweredAndBeginsNothingYet) {
  EXPECT_TRUE(hears(Kind::kHello, 1000, 0, 40));
  EXPECT_EQ(link().state, LinkState::kIdle);
  EXPECT_EQ(link().keys.remote, 1000u);
  EXPECT_EQ(link().next_out, HeaderWords::key_and_number(1000, 40));
  EXPECT_EQ(link().instance, kInstance);
  EXPECT_TRUE(link().say.welcome);
  EXPECT_TRUE(port_.peers.has_talkers());
}

TEST_F(SessionsTest, AnAnswerWithOurKeyBeginsIt) {
  begin_session();
  EXPECT_EQ(link().session, 1u);
  EXPECT_EQ(port_.sessions.ended(), 0u);
}

TEST_F(SessionsTest, SenselessMessagesAreRecognized) {
  EXPECT_FALSE(hears(Kind::kWelcome, 1000, 1)) << "no link";
  EXPECT_EQ(port_.peers.find(kPeer), nullptr) << "no peer is made for such a message";
  EXPECT_FALSE(hears(Kind::kHello, 0, 0)) << "no key";
  EXPECT_EQ(port_.peers.find(kPeer), nullptr);
  begin_session();
  EXPECT_FALSE(hears(Kind::kReset, 1234, 0)) << "a reset of another session";
  EXPECT_FALSE(hears(Kind::kWelcome, 1234, 0)) << "an answer to another question";
  EXPECT_TRUE(hears(Kind::kWelcome, 1000, 0)) << "once more";
  EXPECT_EQ(link().state, LinkState::kUp);
}

TEST_F(SessionsTest, AnotherKeyIsAnotherProcess) {
  begin_session(1000);
  const uint32_t key = link().keys.local;
  EXPECT_TRUE(hears(Kind::kHello, 2000, 0, 1, kInstance + 1));
  EXPECT_EQ(link().session, 2u);
  EXPECT_EQ(link().error, -ECONNRESET);
  EXPECT_EQ(link().keys.former, 1000u);
  EXPECT_EQ(link().keys.remote, 2000u);
  EXPECT_NE(link().keys.local, key) << "the old process may have sent messages with the old key";
  EXPECT_EQ(port_.sessions.ended(), 1u);
}

TEST_F(SessionsTest, ContextsThatHaveSentAreToldOfTheEnd) {
  uint32_t heard = 0;
  ContextSlot slot(512);
  slot.on_session_end = [&] { ++heard; };
  port_.contexts[2] = &slot;
  begin_session();
  link().routes.routed = 1ull << 2 | 1ull << 3;
  link().theirs.asked = 1;
  port_.sessions.end(link(), -EIO, 1ull << 3);
  EXPECT_EQ(heard, 1u);
  EXPECT_EQ(link().routes.untold, 1ull << 2 | 1ull << 3);
  EXPECT_EQ(link().error, -EIO);
  EXPECT_EQ(link().lost, 1ull << 3);
  port_.sessions.close_context(3);
  EXPECT_EQ(link().routes.untold, 1ull << 2);
  EXPECT_EQ(link().lost, 0u);
}

TEST_F(SessionsTest, TheEndGivesSharesAndBuffersBack) {
  ContextSlot slot(512);
  port_.contexts[0] = &slot;
  begin_session();
  const uint32_t unshared = port_.inflows.unshared();
  port_.inflows.open(link(), 0);
  EXPECT_LT(port_.inflows.unshared(), unshared);
  link().backlog = {.held = true, .again = 1, .resent = 2};
  link().say.alive = true;
  port_.sessions.end(link(), -EIO);
  EXPECT_EQ(port_.inflows.unshared(), unshared);
  EXPECT_FALSE(link().in[0].open);
  EXPECT_FALSE(link().backlog.held);
  EXPECT_EQ(link().backlog.again + link().backlog.resent, 0u);
  EXPECT_FALSE(link().say.alive);
  EXPECT_EQ(link().next_in(), link().keys.first_in);
}

TEST_F(SessionsTest, APeerThatBreaksRulesIsToldSo) {
  begin_session();
  port_.sessions.cut_off(link());
  EXPECT_EQ(link().error, -EPROTO);
  EXPECT_EQ(port_.stats.cut_off, 1u);
  EXPECT_TRUE(link().keys.warned);
  EXPECT_TRUE(port_.peers.has_talkers());
}

TEST_F(SessionsTest, WhenBothSidesSayHelloOneAnswers) {
  port_.speaker.ask(link());
  EXPECT_TRUE(hears(Kind::kHello, 1000, 0));
  EXPECT_TRUE(link().say.welcome) << "its destID is below ours, so we answer";
  constexpr uint32_t kAbove = Objects::kOwn + 1;
  Link& above = *port_.peers.find_or_make(kAbove);
  port_.speaker.ask(above);
  EXPECT_TRUE(port_.sessions.on_message(port_.rails.first(), kAbove, Kind::kHello,
                                        {kMagic, 1000, 0, 0, 1, 0}));
  EXPECT_FALSE(above.say.welcome) << "it is the one that answers";
}

TEST_F(SessionsTest, AnotherInstanceIsReportedOnce) {
  begin_session();
  port_.sessions.meet_instance(kPeer, kInstance);
  EXPECT_EQ(link().state, LinkState::kUp);
  port_.sessions.meet_instance(kPeer, kInstance + 1);
  EXPECT_EQ(link().state, LinkState::kIdle);
  EXPECT_EQ(link().error, -ECONNRESET);
}

}  // namespace
}  // namespace rio::msg::test
