#include "lib/msg/grant.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace rio::msg {
namespace {

using Sender = SendGrant::State;
using Receiver = RecvGrant::State;

constexpr StopCause kFailed{7, false};
constexpr StopCause kAgain{0, true};

TEST(SendGrant, SendsWhatWasGranted) {
  SendGrant sender;
  EXPECT_EQ(sender.may_post(), 0u);
  ASSERT_EQ(sender.on_grant(0, 2, 10, 4), 0);
  EXPECT_EQ(sender.mailbox(), 2);
  EXPECT_EQ(sender.may_post(), 4u);
  sender.posted(3);
  EXPECT_EQ(sender.may_post(), 1u);
  ASSERT_EQ(sender.on_extend(0, 10), 0);
  EXPECT_EQ(sender.may_post(), 7u);
  sender.posted(7);
  sender.completed(9);
  EXPECT_EQ(sender.state(), Sender::kSending);
  sender.completed(1);
  EXPECT_EQ(sender.state(), Sender::kDone);
  EXPECT_TRUE(sender.over());
}

TEST(SendGrant, RefusesWhatAnHonestReceiverCannotSay) {
  SendGrant sender;
  EXPECT_EQ(sender.on_grant(1, 1, 4, 4), -EPROTO);  // an attempt that was not asked for
  EXPECT_EQ(sender.on_grant(0, 1, 4, 5), -EPROTO);  // more than there is
  EXPECT_EQ(sender.on_grant(0, 1, 4, 0), -EPROTO);
  EXPECT_EQ(sender.on_grant(0, 1, 0, 0), -EPROTO);
  EXPECT_EQ(sender.on_extend(0, 2), -EPROTO);  // nothing is granted
  EXPECT_EQ(sender.on_done(0), -EPROTO);       // and nothing was closed
  EXPECT_EQ(sender.state(), Sender::kRequested);
  ASSERT_EQ(sender.on_grant(0, 1, 4, 2), 0);
  EXPECT_EQ(sender.on_grant(0, 1, 4, 2), -EPROTO);  // twice
  EXPECT_EQ(sender.on_extend(0, 2), -EPROTO);       // does not grow
  EXPECT_EQ(sender.on_extend(0, 5), -EPROTO);       // more than there is
  EXPECT_EQ(sender.on_extend(1, 3), -EPROTO);
  EXPECT_EQ(sender.on_abort(1, kFailed), -EPROTO);
  EXPECT_EQ(sender.on_abort(0, kAgain), -EPROTO);  // this was no offer
  EXPECT_EQ(sender.state(), Sender::kSending);
}

TEST(SendGrant, ClosesWhenAllIsAnsweredAndDoubtIsOver) {
  SendGrant sender;
  ASSERT_EQ(sender.on_grant(0, 1, 8, 4), 0);
  sender.posted(3);
  sender.stop(kAgain);
  sender.rest_until(1000);
  EXPECT_EQ(sender.may_post(), 0u);
  sender.completed(2);
  EXPECT_FALSE(sender.closed_due(2000));
  sender.completed(1);
  EXPECT_FALSE(sender.closed_due(999));
  ASSERT_TRUE(sender.closed_due(1000));
  const SendGrant::Closed closed = sender.take_closed();
  EXPECT_EQ(closed.attempt, 0);
  EXPECT_EQ(closed.arrived, 0u) << "what ended after the first that failed is not certain";
  EXPECT_TRUE(closed.cause.again);
  EXPECT_EQ(sender.state(), Sender::kRequested);
  EXPECT_EQ(sender.attempt(), 1);
  EXPECT_FALSE(sender.closed_due(1000));
  // What was said of the old attempt, and came late.
  EXPECT_EQ(sender.on_extend(0, 8), 0);
  EXPECT_EQ(sender.state(), Sender::kRequested);
  // The receiver had it all.
  EXPECT_EQ(sender.on_done(1), 0);
  EXPECT_EQ(sender.state(), Sender::kDone);
}

TEST(SendGrant, GivesUpAfterSoManyAttempts) {
  SendGrant sender;
  for (int i = 0; i + 1 < kFruitlessMax; ++i) {
    ASSERT_EQ(sender.on_grant(sender.attempt(), 1, 2, 2), 0);
    sender.stop(kAgain);
    ASSERT_TRUE(sender.closed_due(0));
    EXPECT_TRUE(sender.take_closed().cause.again);
  }
  ASSERT_EQ(sender.on_grant(sender.attempt(), 1, 2, 2), 0);
  sender.stop(kAgain);
  EXPECT_FALSE(sender.take_closed().cause.again);
  EXPECT_TRUE(sender.over());
}

TEST(SendGrant, GoesOnAsLongAsItIsBroughtFurther) {
  SendGrant sender;
  for (int i = 0; i + 1 < kAttemptsMax; ++i) {
    ASSERT_EQ(sender.on_grant(sender.attempt(), 1, 2, 2), 0);
    if (i % (kFruitlessMax - 1) == 0) {
      sender.brought_further();
    }
    sender.posted(2);
    sender.completed(1);
    sender.stop(kAgain);
    sender.completed(1);
    ASSERT_TRUE(sender.closed_due(0));
    const SendGrant::Closed closed = sender.take_closed();
    ASSERT_TRUE(closed.cause.again) << i;
    ASSERT_EQ(closed.arrived, 1u);
  }
  ASSERT_EQ(sender.on_grant(sender.attempt(), 1, 2, 2), 0);
  sender.brought_further();
  EXPECT_FALSE(sender.may_ask_again());
}

TEST(SendGrant, AnswersAbortOnceForEachAttempt) {
  SendGrant waiting;
  ASSERT_EQ(waiting.on_abort(0, kFailed), 0);
  ASSERT_TRUE(waiting.closed_due(0));
  EXPECT_EQ(waiting.take_closed().arrived, 0u);
  EXPECT_TRUE(waiting.over());
  EXPECT_EQ(waiting.on_abort(0, kFailed), 0);  // crossed with CLOSED
  EXPECT_FALSE(waiting.closed_due(0));

  SendGrant done;
  ASSERT_EQ(done.on_grant(0, 1, 1, 1), 0);
  done.posted(1);
  done.completed(1);
  ASSERT_EQ(done.on_abort(0, kFailed), 0);
  ASSERT_TRUE(done.closed_due(0));
  EXPECT_EQ(done.take_closed().arrived, 1u);
  EXPECT_TRUE(done.over());

  SendGrant again;  // ABORT crossed with its CLOSED
  ASSERT_EQ(again.on_grant(0, 1, 2, 2), 0);
  again.stop(kAgain);
  static_cast<void>(again.take_closed());
  ASSERT_EQ(again.on_abort(0, kFailed), 0);
  EXPECT_EQ(again.state(), Sender::kEnded);
  EXPECT_EQ(again.cause().reason, 7);
  EXPECT_FALSE(again.closed_due(0));
}

TEST(SendGrant, AnAcceptedOfferIsDoneOnlyWhenTheReceiverHasTakenIt) {
  SendGrant sender;
  sender.accept(3, 2, 2);
  sender.posted(2);
  sender.completed(2);
  EXPECT_EQ(sender.state(), Sender::kSending);  // they may have gone astray
  ASSERT_EQ(sender.on_abort(0, kAgain), 0);     // as they have
  ASSERT_TRUE(sender.closed_due(0));
  static_cast<void>(sender.take_closed());
  ASSERT_EQ(sender.on_grant(1, 1, 2, 2), 0);
  sender.posted(2);
  sender.completed(2);
  EXPECT_EQ(sender.state(), Sender::kDone);

  SendGrant taken;
  taken.accept(3, 2, 2);
  taken.posted(2);
  taken.completed(2);
  ASSERT_EQ(taken.on_extend(0, 2), 0);
  EXPECT_EQ(taken.state(), Sender::kDone);
}

TEST(SendGrant, AParkedOfferThatWasStoppedForAnotherReasonIsNoLie) {
  SendGrant sender;
  sender.accept(1, 4, 2);
  sender.posted(1);
  sender.stop(kAgain);
  sender.completed(1);
  static_cast<void>(sender.take_closed());
  EXPECT_EQ(sender.on_abort(0, kAgain), 0);  // crossed
  EXPECT_EQ(sender.state(), Sender::kRequested);
}

TEST(RecvGrant, KeepsAWindowAndTellsHalves) {
  RecvGrant receiver;
  EXPECT_EQ(receiver.may_post(), 0u);
  receiver.start(10, 4);
  EXPECT_EQ(receiver.may_post(), 4u);
  receiver.posted(4);
  EXPECT_EQ(receiver.tell(), 4u);
  receiver.completed(1);
  receiver.posted(1);
  EXPECT_FALSE(receiver.extend_due());
  receiver.completed(1);
  receiver.posted(1);
  EXPECT_TRUE(receiver.extend_due());
  EXPECT_EQ(receiver.tell(), 6u);
  receiver.completed(4);
  EXPECT_EQ(receiver.may_post(), 4u);
  receiver.posted(4);
  EXPECT_EQ(receiver.tell(), 10u);
  receiver.completed(3);
  EXPECT_EQ(receiver.state(), Receiver::kReceiving);
  receiver.completed(1);
  EXPECT_EQ(receiver.state(), Receiver::kDone);
}

TEST(RecvGrant, TellsTheLastOnesHoweverFew) {
  RecvGrant receiver;
  receiver.start(9, 8);
  receiver.posted(8);
  static_cast<void>(receiver.tell());
  receiver.completed(1);
  receiver.posted(1);
  EXPECT_TRUE(receiver.extend_due());
}

TEST(RecvGrant, RefusesWhatAnHonestSenderCannotSay) {
  RecvGrant receiver;
  EXPECT_EQ(receiver.on_closed(0, 1, kFailed), -EPROTO);  // sent without a grant
  EXPECT_EQ(receiver.on_closed(0, 0, kAgain), -EPROTO);
  receiver.start(4, 2);
  receiver.posted(2);
  static_cast<void>(receiver.tell());
  EXPECT_EQ(receiver.on_closed(0, 3, kFailed), -EPROTO);
  EXPECT_EQ(receiver.on_closed(1, 0, kFailed), -EPROTO);
  EXPECT_EQ(receiver.state(), Receiver::kReceiving);
  for (int i = 0; i + 1 < kAttemptsMax; ++i) {
    ASSERT_EQ(receiver.on_closed(receiver.attempt(), 0, kAgain), 0);
    receiver.start(4, 2);
  }
  EXPECT_EQ(receiver.on_closed(receiver.attempt(), 0, kAgain), -EPROTO);
}

/// Behind a message that was refused another may have taken its entry.
TEST(RecvGrant, KeepsWhatBothSaw) {
  RecvGrant receiver;
  receiver.start(8, 4);
  receiver.posted(4);
  static_cast<void>(receiver.tell());
  receiver.completed(3);
  ASSERT_EQ(receiver.on_closed(0, 2, kAgain), 0);
  EXPECT_EQ(receiver.kept(), 2u);
  receiver.start(6, 4);
  receiver.posted(4);
  static_cast<void>(receiver.tell());
  receiver.completed(1);
  ASSERT_EQ(receiver.on_closed(1, 4, kAgain), 0) << "entries that the card has not told of yet";
  EXPECT_EQ(receiver.kept(), 1u);
}

TEST(RecvGrant, StopsAndIsClosed) {
  RecvGrant receiver;
  receiver.start(4, 2);
  receiver.posted(2);
  static_cast<void>(receiver.tell());
  EXPECT_TRUE(receiver.stop(kFailed));
  EXPECT_FALSE(receiver.stop(kFailed));
  EXPECT_EQ(receiver.may_post(), 0u);
  EXPECT_FALSE(receiver.extend_due());
  ASSERT_EQ(receiver.on_closed(0, 1, kAgain), 0);  // crossed: it does not go on
  EXPECT_EQ(receiver.state(), Receiver::kEnded);
  EXPECT_EQ(receiver.cause().reason, 7);
}

TEST(RecvGrant, TheSenderMayAskAgainAndGiveUpBeforeItHearsThatAllIsOver) {
  RecvGrant done;
  done.start(1, 1);
  done.posted(1);
  static_cast<void>(done.tell());
  done.completed(1);
  EXPECT_EQ(done.on_closed(0, 1, kAgain), 0);
  EXPECT_EQ(done.on_closed(1, 0, kFailed), 0);
  EXPECT_EQ(done.state(), Receiver::kDone);
  EXPECT_EQ(done.on_closed(2, 0, kFailed), -EPROTO);
}

TEST(RecvGrant, AParkedTransferWaitsAgain) {
  RecvGrant receiver;
  receiver.told_by_offer(2);
  EXPECT_TRUE(receiver.stop(kAgain));
  EXPECT_EQ(receiver.state(), Receiver::kParked);
  ASSERT_EQ(receiver.on_closed(0, 2, kAgain), 0);
  EXPECT_EQ(receiver.state(), Receiver::kWaiting);
  EXPECT_EQ(receiver.attempt(), 1);
  EXPECT_EQ(receiver.on_closed(0, 2, kAgain), 0);  // of an attempt that is over
  EXPECT_EQ(receiver.state(), Receiver::kWaiting);
}

/// Both sides of one transfer with a stream each way and a card between, every step at random.
class RandomTransfer {
 public:
  explicit RandomTransfer(uint32_t seed)
      : random_(seed), messages_(1 + pick(40)), window_(1 + pick(8)), bad_(pick(3) == 0) {
    if (pick(2) == 0) {
      offered_ = 1 + pick(std::min(messages_, window_));
      sender_.accept(1, messages_, offered_);
    }
  }

  void run() {
    for (int i = 0; i < 100000 && !over(); ++i) {
      step();
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
    }
    ASSERT_TRUE(over()) << "it stands still";
    if (sender_.state() == Sender::kDone) {
      ASSERT_TRUE(receiver_.state() == Receiver::kDone || receiver_.state() == Receiver::kEnded);
    }
    if (!failed_) {
      ASSERT_EQ(sender_.state(), Sender::kDone);
      ASSERT_EQ(receiver_.state(), Receiver::kDone);
      ASSERT_EQ(landed_.size(), messages_);
    }
  }

 private:
  enum class Kind { kGrant, kExtend, kAbort, kDone, kClosed };
  struct Said {
    Kind kind;
    uint8_t attempt;
    uint32_t total;
    StopCause cause;
  };
  struct Flying {
    uint8_t attempt;
    uint32_t number;
    bool doubt;
  };

  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  bool receiver_over() const {
    return receiver_.state() == Receiver::kDone || receiver_.state() == Receiver::kEnded;
  }
  bool over() const {
    return sender_.over() && receiver_over() && net_.empty() && up_.empty() && down_.empty();
  }

  /// ACCEPT is ahead of all that the sender says later; start() takes it.
  bool accept_on_its_way() const {
    return offered_ != 0 && receiver_.state() == Receiver::kWaiting && receiver_.attempt() == 0;
  }

  void step() {
    ++now_;
    switch (pick(7)) {
      case 0:
        start();
        break;
      case 1:
        post();
        break;
      case 2:
        land();
        break;
      case 3:
        say();
        break;
      case 4:
        hear_sender();
        break;
      case 5:
        hear_receiver();
        break;
      case 6:
        disturb();
        break;
    }
  }

  void start() {
    if (receiver_.state() != Receiver::kWaiting) {
      return;
    }
    const bool accepted = offered_ != 0 && receiver_.attempt() == 0;
    if (accepted && pick(3) == 0) {  // no receive is there for it
      receiver_.told_by_offer(offered_);
      ASSERT_TRUE(receiver_.stop(kAgain));
      down_.push_back({Kind::kAbort, 0, 0, kAgain});
      return;
    }
    ASSERT_TRUE(accepted || net_.empty());  // nothing of an earlier attempt is on its way
    landed_.clear();
    receiver_.start(messages_, window_);
    receiver_.posted(receiver_.may_post());
    down_.push_back(
        {accepted ? Kind::kExtend : Kind::kGrant, receiver_.attempt(), receiver_.tell(), {}});
  }

  void post() {
    if (sender_.may_post() != 0) {
      net_.push_back({sender_.attempt(), sender_.next(), false});
      sender_.posted(1);
    }
    if (receiver_.may_post() != 0 && pick(2) == 0) {
      receiver_.posted(1 + pick(receiver_.may_post()));
    }
  }

  /// The card: in order, as the order flag has it.
  void land() {
    if (net_.empty()) {
      return;
    }
    if (accept_on_its_way()) {
      return;  // open and empty: RETRY
    }
    const Flying message = net_.front();
    net_.pop_front();
    if (receiver_.state() == Receiver::kReceiving) {
      ASSERT_EQ(message.attempt, receiver_.attempt());
      ASSERT_EQ(message.number, receiver_.done());
      ASSERT_LT(receiver_.done(), receiver_.next()) << "an empty queue";
      landed_.insert(message.number);
      receiver_.completed(1);
    } else {
      ASSERT_TRUE(receiver_.state() == Receiver::kStopping ||
                  receiver_.state() == Receiver::kParked)
          << "it went astray";
    }
    if (bad_ && pick(20) == 0) {
      sender_.stop(kAgain);  // the answer was lost
      sender_.rest_until(now_ + pick(30));
      failed_ = failed_ || !sender_.may_ask_again();
    }
    sender_.completed(1);
  }

  void say() {
    if (receiver_.extend_due()) {
      down_.push_back({Kind::kExtend, receiver_.attempt(), receiver_.tell(), {}});
    }
    if (sender_.closed_due(now_)) {
      ASSERT_TRUE(net_.empty());
      const SendGrant::Closed closed = sender_.take_closed();
      up_.push_back({Kind::kClosed, closed.attempt, closed.arrived, closed.cause});
    }
  }

  void hear_sender() {
    if (up_.empty() || accept_on_its_way()) {
      return;
    }
    const Said said = up_.front();
    up_.pop_front();
    const bool had_all = receiver_.state() == Receiver::kDone;
    ASSERT_EQ(receiver_.on_closed(said.attempt, said.total, said.cause), 0);
    if (had_all && said.cause.again) {
      down_.push_back({Kind::kDone, static_cast<uint8_t>(said.attempt + 1), 0, {}});
    }
  }

  void hear_receiver() {
    if (down_.empty()) {
      return;
    }
    const Said said = down_.front();
    down_.pop_front();
    switch (said.kind) {
      case Kind::kGrant:
        ASSERT_EQ(sender_.on_grant(said.attempt, 1, messages_, said.total), 0);
        break;
      case Kind::kExtend:
        ASSERT_EQ(sender_.on_extend(said.attempt, said.total), 0);
        break;
      case Kind::kAbort:
        ASSERT_EQ(sender_.on_abort(said.attempt, said.cause), 0);
        break;
      case Kind::kDone:
        ASSERT_EQ(sender_.on_done(said.attempt), 0);
        break;
      case Kind::kClosed:
        FAIL();
        break;
    }
  }

  void disturb() {
    if (!bad_ || pick(100) != 0) {
      return;
    }
    failed_ = true;
    if (pick(2) == 0) {
      sender_.stop(kFailed);
    } else if (!accept_on_its_way() && receiver_.stop(kFailed)) {
      down_.push_back({Kind::kAbort, receiver_.attempt(), 0, kFailed});
    }
  }

  std::mt19937 random_;
  uint32_t messages_;
  uint32_t window_;
  bool bad_;
  uint32_t offered_ = 0;  // messages that may follow ACCEPT; 0: it was no offer
  bool failed_ = false;
  SendGrant sender_;
  RecvGrant receiver_;
  std::deque<Said> up_;
  std::deque<Said> down_;
  std::deque<Flying> net_;
  std::set<uint32_t> landed_;
  uint64_t now_ = 0;
};

TEST(Grant, EachTransferEndsAndLandsOnce) {
  const uint32_t first = std::random_device{}();
  for (uint32_t seed = first; seed != first + 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTransfer(seed).run();
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace rio::msg
