// Rests of silent peers, and retransmission, without a port.
#include <utility>

#include "base/clock.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/silence.hpp"
#include "tests/unit/lib/msg/objects.hpp"

namespace rio::msg::test {
namespace {

class RestsTest : public testing::Test {
 protected:
  [[nodiscard]] Again message(uint32_t number) {
    Again again = {link_.index(), link_.session, port_.listening.now_ns(),
                   std::vector<uint8_t>(kHeaderBytes)};
    const HeaderWords header = {HeaderWords::key_and_number(55, number), 0};
    std::memcpy(again.bytes.data(), &header, sizeof(header));
    return again;
  }
  [[nodiscard]] bool all_completed() {
    return until([&] {
      port_.outbox.reap();
      return port_.outbox.ring().outstanding() == 0;
    });
  }
  /// Waits for longer than a rest lasts, which is 4.4 ms.
  static void wait_ms(uint32_t ms) {
    const uint64_t end = base::now_ns() + uint64_t{ms} * 1'000'000;
    while (base::now_ns() < end) {
    }
  }

  Objects port_;
  Link& link_ = port_.peer_with_session();
};

TEST_F(RestsTest, ARestingPeerGetsNothingUntilItsRestEnds) {
  link_.out[0] = SendAccount(8);
  port_.silence.begin_rest(*link_.path);
  port_.silence.begin_rest(*link_.path);  // it rests already, so this call changes nothing
  EXPECT_TRUE(link_.path->rest.on);
  EXPECT_TRUE(port_.silence.any_rests());
  EXPECT_EQ(port_.stats.rests, 1u);
  EXPECT_EQ(link_.out[0].available(), 0) << "no sender finds credit";
  static_cast<void>(port_.peers.take_talkers());
  link_.say.listed = false;
  port_.silence.end_rest(*link_.path);
  EXPECT_FALSE(link_.path->rest.on);
  EXPECT_FALSE(port_.silence.any_rests());
  EXPECT_TRUE(port_.peers.has_talkers());
  port_.retries.progress();
  EXPECT_EQ(link_.out[0].available(), 8) << "credit is available again";
}

TEST_F(RestsTest, WithoutAQuestionARestEndsByTheClock) {
  link_.state = LinkState::kIdle;  // there is no session that could end
  port_.silence.begin_rest(*link_.path);
  port_.silence.check_rests();
  EXPECT_TRUE(link_.path->rest.on) << "letters in doubt are not used before the rest ends";
  wait_ms(5);
  port_.silence.check_rests();
  EXPECT_FALSE(link_.path->rest.on);
}

TEST_F(RestsTest, APeerThatIsSilentAgainRestsForLonger) {
  port_.silence.begin_rest(*link_.path);
  const uint64_t first = link_.path->rest.length_ns;
  port_.silence.end_rest(*link_.path);
  port_.silence.begin_rest(*link_.path);
  EXPECT_EQ(link_.path->rest.length_ns, 2 * first);
}

TEST_F(RestsTest, APeerThatIsSilentForTooLongLosesItsSession) {
  port_.silence.begin_rest(*link_.path);
  port_.retries.hold(link_);
  port_.retries.keep(link_, message(0));
  wait_ms(2 * Objects::kDeliverMs);
  port_.silence.check_rests();
  EXPECT_EQ(link_.state, LinkState::kIdle);
  EXPECT_EQ(link_.error, -ETIMEDOUT);
  EXPECT_FALSE(port_.retries.has_any()) << "messages kept for it are dropped";
}

TEST_F(RestsTest, NoPeerWaitsWhenNothingIsOutstanding) {
  EXPECT_FALSE(port_.silence.others_wait(99, port_.outbox.ring().next_index()));
  for (uint32_t i = 0; i < 100; ++i) {
    port_.silence.check_ring();
  }
  EXPECT_EQ(port_.stats.restarts, 0u);
}

TEST_F(RestsTest, RetransmissionKeepsTheLinkHeldUntilAllHasArrived) {
  link_.out[0] = SendAccount(8);
  port_.retries.hold(link_);
  for (uint32_t i = 0; i < 6; ++i) {
    port_.retries.keep(link_, message(i));
  }
  EXPECT_EQ(link_.backlog.again, 6u);
  port_.retries.progress();
  EXPECT_EQ(link_.backlog.resent, 4u) << "a few at a time";
  EXPECT_EQ(link_.out[0].available(), 0);
  EXPECT_TRUE(port_.retries.is_resent(port_.rails.first(), port_.outbox.ring().next_index() - 1));
  ASSERT_TRUE(all_completed());
  port_.retries.progress();
  ASSERT_TRUE(all_completed());
  port_.retries.progress();
  EXPECT_FALSE(port_.retries.has_any());
  EXPECT_EQ(link_.backlog.resent, 0u);
  EXPECT_EQ(port_.stats.again, 6u);
  EXPECT_EQ(link_.out[0].available(), 8);
}

TEST_F(RestsTest, MessagesForARestingPeerWaitForTheEndOfTheRest) {
  port_.silence.begin_rest(*link_.path);
  port_.retries.keep(link_, message(0));
  port_.retries.progress();
  EXPECT_EQ(port_.stats.again, 0u);
  EXPECT_TRUE(port_.retries.has_any());
  EXPECT_FALSE(port_.retries.has_due());
  port_.silence.end_rest(*link_.path);
  EXPECT_TRUE(port_.retries.has_due());
  port_.retries.progress();
  EXPECT_EQ(port_.stats.again, 1u);
  EXPECT_TRUE(all_completed());
}

TEST_F(RestsTest, NothingOfAnEndedSessionIsSent) {
  port_.retries.keep(link_, message(0));
  port_.sessions.end(link_, -EIO);
  port_.retries.progress();
  EXPECT_EQ(port_.stats.again, 0u);
  EXPECT_FALSE(port_.retries.has_any());
}

}  // namespace
}  // namespace rio::msg::test
