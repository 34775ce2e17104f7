// SendGrant and RecvGrant against each other, with random steps.
#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <string>

#include "tests/support/seed.hpp"
#include "tests/unit/lib/msg/grant_fixture.hpp"

namespace rio::msg::test {
namespace {

/// Both sides of one transfer, a stream of control messages each way and a card between them; every
/// step is random.
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
    ASSERT_TRUE(over()) << "the transfer stands still";
    if (sender_.state() == SendState::kDone) {
      ASSERT_TRUE(receiver_.state() == RecvState::kDone || receiver_.state() == RecvState::kEnded);
    }
    if (!failed_) {
      ASSERT_EQ(sender_.state(), SendState::kDone);
      ASSERT_EQ(receiver_.state(), RecvState::kDone);
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
    return receiver_.state() == RecvState::kDone || receiver_.state() == RecvState::kEnded;
  }
  bool over() const {
    return sender_.over() && receiver_over() && net_.empty() && up_.empty() && down_.empty();
  }

  /// ACCEPT arrives before anything that the sender says later, since messages of a session are in
  /// order; start() reads it.
  bool accept_on_its_way() const {
    return offered_ != 0 && receiver_.state() == RecvState::kWaiting && receiver_.attempt() == 0;
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
    if (receiver_.state() != RecvState::kWaiting) {
      return;
    }
    const bool accepted = offered_ != 0 && receiver_.attempt() == 0;
    if (accepted && pick(3) == 0) {  // the receiver has no receive posted for the offer
      receiver_.told_by_offer(offered_);
      ASSERT_TRUE(receiver_.stop(kAgain));
      down_.push_back({Kind::kAbort, 0, 0, kAgain});
      return;
    }
    ASSERT_TRUE(accepted || net_.empty());  // no message of an earlier attempt is on its way
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

  /// The card delivers messages in order, as their order flag demands.
  void land() {
    if (net_.empty()) {
      return;
    }
    if (accept_on_its_way()) {
      return;  // open and empty: RETRY
    }
    const Flying message = net_.front();
    net_.pop_front();
    if (receiver_.state() == RecvState::kReceiving) {
      ASSERT_EQ(message.attempt, receiver_.attempt());
      ASSERT_EQ(message.number, receiver_.done());
      ASSERT_LT(receiver_.done(), receiver_.next()) << "an empty queue";
      landed_.insert(message.number);
      receiver_.completed(1);
    } else {
      ASSERT_TRUE(receiver_.state() == RecvState::kStopping ||
                  receiver_.state() == RecvState::kParked)
          << "it landed in another transfer";
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
    const bool had_all = receiver_.state() == RecvState::kDone;
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
  uint32_t offered_ = 0;  // messages that may follow ACCEPT; 0: the transfer began without an offer
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
  const uint32_t first = rio::test::first_seed();
  for (uint32_t seed = first; seed != first + 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTransfer(seed).run();
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace rio::msg::test
