#include "fpga/model/barrier/engine.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/fpga/model/barrier/engine_descs.hpp"

namespace rio::model::barrier {
namespace {

using regs::Status;

constexpr uint64_t kTimeoutNs = 1000;
constexpr uint64_t kRetryNs = 100;

class Recorder final : public Ends {
 public:
  void send(const Request& request) override { requests.push_back(request); }
  void end(const Ended& ended) override { ends.push_back(ended); }
  void report_foreign(uint32_t source, const Notice& /*notice*/) override {
    foreign.push_back(source);
  }
  /// Takes the requests since the last call.
  std::vector<Request> taken() { return std::exchange(requests, {}); }

  std::vector<Request> requests;
  std::vector<Ended> ends;
  std::vector<uint32_t> foreign;
};

/// Two rounds: with peer 2, then with peer 3.
regs::BarrierDesc two_rounds(uint32_t epoch = 0, regs::BarrierOp op = regs::BarrierOp::kRun) {
  return desc(2, {{0, 0, 2}, {1, 0, 3}}, epoch, op);
}
Notice notice(uint32_t round, uint32_t epoch = 0) {
  return {5, epoch & 7, round};
}
Notice cancel(uint32_t epoch = 0) {
  return notice(regs::kBarrierRoundCancel, epoch);
}

class Engine : public testing::Test {
 protected:
  void post(const regs::BarrierDesc& what) { engine_.post(now_ns_, what, 9); }
  Answer receive(uint32_t source, const Notice& what) {
    return engine_.receive(now_ns_, source, what);
  }
  /// Answers all requests that were sent.
  void answer_all(Answer answer = Answer::kDone) {
    for (const Request& request : ends_.taken()) {
      engine_.answered(now_ns_, request.tag, answer);
    }
  }
  void wait(uint64_t ns) { engine_.advance(now_ns_ += ns); }
  /// Runs the barrier of two_rounds() to its end.
  void run(uint32_t epoch) {
    post(two_rounds(epoch));
    EXPECT_EQ(receive(2, notice(0, epoch)), Answer::kDone);
    EXPECT_EQ(receive(3, notice(1, epoch)), Answer::kDone);
    answer_all();
  }
  [[nodiscard]] Status last_status() const { return ends_.ends.back().status; }

  uint64_t now_ns_ = 0;
  EarlyRoom room_{4};
  Recorder ends_;
  BarrierEngine engine_{
      {.response_timeout_ns = kTimeoutNs, .retry_ns = kRetryNs, .resend_limit = 2, .own_id = 1},
      ends_,
      room_};
};

TEST_F(Engine, TimeOutsOfAnUnknownTimeBeginWithTheNextAdvance) {
  engine_.post(BarrierEngine::kUnknownNs, two_rounds(), 9);
  EXPECT_EQ(ends_.taken().size(), 1u);
  EXPECT_EQ(engine_.due_ns(), 0u);
  wait(50 * kTimeoutNs);
  EXPECT_EQ(engine_.due_ns(), now_ns_ + kTimeoutNs);
  wait(kTimeoutNs - 1);
  EXPECT_TRUE(ends_.requests.empty());
  wait(1);
  ASSERT_EQ(ends_.requests.size(), 1u);
  // It has sent something again: it holds its end back, from the next advance on.
  EXPECT_EQ(engine_.receive(BarrierEngine::kUnknownNs, 2, notice(0)), Answer::kDone);
  EXPECT_EQ(engine_.receive(BarrierEngine::kUnknownNs, 3, notice(1)), Answer::kDone);
  for (const Request& request : ends_.taken()) {
    engine_.answered(BarrierEngine::kUnknownNs, request.tag, Answer::kDone);
  }
  wait(50 * kTimeoutNs);
  wait(2 * kTimeoutNs - 1);
  EXPECT_TRUE(ends_.ends.empty());
  wait(1);
  ASSERT_EQ(ends_.ends.size(), 1u);
  EXPECT_EQ(last_status(), Status::kOk);
}

TEST_F(Engine, SendsARoundOnceAllEarlierOnesHaveArrived) {
  post(two_rounds());
  ASSERT_EQ(ends_.requests.size(), 1u);
  EXPECT_EQ(ends_.requests[0].dest_id, 2u);
  EXPECT_EQ(ends_.requests[0].notice.info(), 0x8500);
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);  // a later round does not count for this one
  EXPECT_EQ(ends_.requests.size(), 1u);
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  ASSERT_EQ(ends_.requests.size(), 2u);
  EXPECT_EQ(ends_.requests[1].notice.info(), 0x8501);
  EXPECT_TRUE(ends_.ends.empty());  // two answers are missing
  answer_all();
  ASSERT_EQ(ends_.ends.size(), 1u);
  EXPECT_EQ(ends_.ends[0].status, Status::kOk);
  EXPECT_EQ(ends_.ends[0].cookie, 77u);
  EXPECT_EQ(ends_.ends[0].index, 9u);
}

TEST_F(Engine, DoesNotEndBeforeTheLastNotification) {
  post(two_rounds());
  receive(2, notice(0));
  answer_all();
  EXPECT_TRUE(ends_.ends.empty());
  receive(3, notice(1));
  EXPECT_EQ(last_status(), Status::kOk);
}

TEST_F(Engine, ACopyChangesNothing) {
  post(two_rounds());
  receive(2, notice(0));
  receive(2, notice(0));
  EXPECT_EQ(ends_.requests.size(), 2u);
  EXPECT_EQ(engine_.counters().sent, 2u);
}

TEST_F(Engine, RefusesBadDescriptors) {
  std::vector<regs::BarrierDesc> bad(9, two_rounds());
  bad[0].control &= ~regs::barrier_desc::Control::rounds.mask();
  bad[1].control |= regs::barrier_desc::Control::rounds.mask();
  bad[2].send |= 1u << 4;                    // beyond the rounds
  bad[3].send = bad[3].await = 3;            // a round without a bit
  bad[4].peers[1] = 4;                       // a peer without bits
  bad[5].send |= 2;                          // bits without a peer
  bad[6] = desc(1, {{0, 0, 2}, {0, 1, 2}});  // one peer twice for one direction
  bad[7].group = 128;
  bad[8].control |= regs::barrier_desc::Control::op.mask();
  for (const regs::BarrierDesc& each : bad) {
    post(each);
    EXPECT_EQ(last_status(), Status::kBadDescriptor);
  }
  EXPECT_EQ(ends_.ends.size(), bad.size());
  EXPECT_TRUE(ends_.requests.empty());
  post(desc(1, {{0, 0, 2, true, false}, {0, 1, 2, false, true}}));  // both peers are one node
  EXPECT_EQ(ends_.ends.size(), bad.size());
}

TEST_F(Engine, AGroupHasOneBarrierAtATime) {
  post(two_rounds());
  post(two_rounds(1));
  EXPECT_EQ(last_status(), Status::kBadDescriptor);
}

TEST_F(Engine, KeepsWhatArrivesBeforeItsDescriptor) {
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);  // a copy takes no room_
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);
  EXPECT_EQ(engine_.early().size(), 2u);
  post(two_rounds());
  EXPECT_EQ(engine_.early().size(), 0u);
  answer_all();
  EXPECT_EQ(last_status(), Status::kOk);
}

TEST_F(Engine, AnEarlyNotificationOfAForeignSourceDoesNotCount) {
  receive(4, notice(0));
  receive(3, notice(1));
  post(two_rounds());
  answer_all();
  EXPECT_EQ(ends_.foreign, std::vector<uint32_t>{4});
  EXPECT_TRUE(ends_.ends.empty());
}

TEST_F(Engine, AnswersRetryWithoutRoomAndNeverToAPostedBarrier) {
  for (uint32_t source = 10; source < 14; ++source) {
    EXPECT_EQ(receive(source, {6, 0, 0}), Answer::kDone);
  }
  EXPECT_EQ(receive(2, notice(0)), Answer::kRetry);
  EXPECT_EQ(engine_.counters().nacks_given, 1u);
  post(two_rounds());
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);
}

TEST_F(Engine, ALoadedGroupNeedsNoRoom) {
  post(two_rounds(0, regs::BarrierOp::kLoad));
  EXPECT_EQ(last_status(), Status::kOk);
  for (uint32_t source = 10; source < 14; ++source) {
    EXPECT_EQ(receive(source, {6, 0, 0}), Answer::kDone);
  }
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  EXPECT_EQ(receive(4, notice(0)), Answer::kError);
  post(two_rounds());
  EXPECT_EQ(receive(3, notice(1, 1)), Answer::kDone);  // of the next epoch already
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);
  answer_all();
  EXPECT_EQ(last_status(), Status::kOk);
  post(two_rounds(1));
  receive(2, notice(0, 1));
  answer_all();
  EXPECT_EQ(ends_.ends.size(), 3u);
}

TEST_F(Engine, ALoadedGroupKeepsNotificationsOfOneEpoch) {
  post(two_rounds(0, regs::BarrierOp::kLoad));
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);
  post(two_rounds(0, regs::BarrierOp::kCancel));
  ends_.ends.clear();
  post(two_rounds(1));
  answer_all();
  EXPECT_TRUE(ends_.ends.empty()) << "no member has arrived";
  EXPECT_EQ(receive(2, notice(0, 1)), Answer::kDone);
  EXPECT_EQ(receive(3, notice(1, 1)), Answer::kDone);
  answer_all();
  EXPECT_EQ(last_status(), Status::kOk);
}

/// Epochs come round: after eight that were cancelled the low bits are the same.
TEST_F(Engine, NotificationsOfACancelledEpochAreDropped) {
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  EXPECT_EQ(engine_.early().size(), 1u);
  for (uint32_t epoch = 0; epoch < 8; ++epoch) {
    post(two_rounds(epoch, regs::BarrierOp::kCancel));
    EXPECT_EQ(engine_.early().size(), 0u);
  }
  ends_.taken();
  post(two_rounds(8));
  EXPECT_EQ(ends_.taken().size(), 1u) << "the first round is not over";
}

TEST_F(Engine, ACancellationOfALoadedGroupIsOfOneEpoch) {
  post(two_rounds(0, regs::BarrierOp::kLoad));
  EXPECT_EQ(receive(3, cancel()), Answer::kDone);
  post(two_rounds(0, regs::BarrierOp::kCancel));
  ends_.ends.clear();
  post(two_rounds(1));
  EXPECT_TRUE(ends_.ends.empty());
}

/// Another plan than the loaded one may have other peers.
TEST_F(Engine, ACancellationOfALoadedGroupNamesThePeersPlace) {
  post(two_rounds(0, regs::BarrierOp::kLoad));
  EXPECT_EQ(receive(3, cancel()), Answer::kDone);
  post(desc(2, {{0, 1, 3}, {1, 0, 4}}));
  EXPECT_EQ(last_status(), Status::kPeerFailed);
  EXPECT_EQ(ends_.ends.back().where, 1u);
  EXPECT_EQ(receive(3, cancel(1)), Answer::kDone);
  ends_.ends.clear();
  post(desc(1, {{0, 0, 2}}, 1));
  EXPECT_TRUE(ends_.ends.empty());
  EXPECT_EQ(ends_.foreign, std::vector<uint32_t>{3});
}

/// A peer that refuses its cancellation for ever takes no room_ that another barrier needs.
TEST_F(Engine, GivesUpPeersThatRefuseTheirCancellationWhenThereIsNoRoom) {
  post(two_rounds());
  post(two_rounds(0, regs::BarrierOp::kCancel));
  for (uint32_t refused = 0; refused < 6; ++refused) {
    EXPECT_FALSE(engine_.give_up_refused()) << refused;
    answer_all(Answer::kRetry);
    wait(80 * kRetryNs);
  }
  ASSERT_EQ(engine_.barriers(), 1u);
  EXPECT_TRUE(engine_.give_up_refused());
  EXPECT_EQ(engine_.barriers(), 0u);
  answer_all();  // nothing hears it
  EXPECT_FALSE(engine_.give_up_refused());
  post(two_rounds(1));
  answer_all(Answer::kRetry);
  EXPECT_FALSE(engine_.give_up_refused()) << "a barrier that runs";
}

TEST_F(Engine, AReserveKeepsRoomFromOtherEngines) {
  Recorder other_ends;
  BarrierEngine other({kTimeoutNs, kRetryNs, 2, 2}, other_ends, room_);
  engine_.early().reserve(3);
  EXPECT_EQ(other.receive(0, 2, {6, 0, 0}), Answer::kDone);
  EXPECT_EQ(other.receive(0, 3, {6, 0, 0}), Answer::kRetry);
  for (uint32_t source = 10; source < 13; ++source) {
    EXPECT_EQ(receive(source, {6, 0, 0}), Answer::kDone);
  }
  EXPECT_EQ(receive(13, {6, 0, 0}), Answer::kRetry);
  engine_.early().reserve(0);
  engine_.flush(0);
  EXPECT_EQ(other.receive(0, 3, {6, 0, 0}), Answer::kDone);
}

TEST_F(Engine, DropsNotificationsOfTheLastThreeEpochs) {
  for (uint32_t epoch = 6; epoch < 10; ++epoch) {
    run(epoch);
  }
  for (const uint32_t epoch : {9u, 8u, 7u}) {
    EXPECT_EQ(receive(2, notice(0, epoch)), Answer::kDone);
  }
  EXPECT_EQ(engine_.counters().stale, 3u);
  EXPECT_EQ(receive(2, notice(0, 11)), Answer::kError) << "two epochs ahead";
  EXPECT_EQ(receive(2, notice(0, 10)), Answer::kDone);
  EXPECT_EQ(engine_.counters().early, 1u);
}

TEST_F(Engine, AnswersErrorToAForeignSource) {
  post(two_rounds());
  EXPECT_EQ(receive(4, notice(0)), Answer::kError);
  EXPECT_EQ(receive(2, notice(1)), Answer::kError) << "another round's peer";
  EXPECT_EQ(receive(2, notice(21)), Answer::kError);
  EXPECT_EQ(receive(4, cancel()), Answer::kError);
  EXPECT_EQ(engine_.counters().foreign, 4u);
  EXPECT_TRUE(ends_.ends.empty());
}

TEST_F(Engine, RetriesLaterEachTime) {
  post(two_rounds());
  uint64_t delay_ns = kRetryNs;
  for (int i = 0; i < 9; ++i) {
    answer_all(Answer::kRetry);
    const uint64_t before_ns = now_ns_;
    while (ends_.requests.empty()) {
      wait(engine_.due_ns() - now_ns_);
    }
    EXPECT_GE(now_ns_ - before_ns, delay_ns);
    EXPECT_LE(now_ns_ - before_ns, delay_ns + delay_ns / 4);
    delay_ns = std::min(2 * delay_ns, 64 * kRetryNs);
  }
  receive(2, notice(0));
  receive(3, notice(1));
  answer_all();
  EXPECT_EQ(last_status(), Status::kOk) << "a retry is no resend";
  EXPECT_EQ(ends_.ends[0].retries, 9u);
}

TEST_F(Engine, AResendHoldsTheEndBackForTwoTimeouts) {
  post(two_rounds());
  wait(kTimeoutNs);
  EXPECT_EQ(ends_.requests.size(), 2u);
  EXPECT_EQ(engine_.counters().resent, 1u);
  receive(2, notice(0));
  receive(3, notice(1));
  answer_all();
  EXPECT_TRUE(ends_.ends.empty());
  wait(2 * kTimeoutNs - 1);
  EXPECT_TRUE(ends_.ends.empty());
  wait(1);
  ASSERT_EQ(ends_.ends.size(), 1u);
  EXPECT_EQ(ends_.ends[0].status, Status::kOk);
  EXPECT_EQ(ends_.ends[0].resent, 1u);
}

TEST_F(Engine, ASilentPeerEndsTheBarrierAndAllPeersAreTold) {
  post(two_rounds());
  receive(2, notice(0));
  engine_.answered(now_ns_, ends_.requests[0].tag, Answer::kDone);
  for (int i = 0; i < 3; ++i) {
    ends_.requests.clear();
    wait(kTimeoutNs);
  }
  ASSERT_EQ(ends_.ends.size(), 1u);
  EXPECT_EQ(ends_.ends[0].status, Status::kResponseTimeout);
  EXPECT_EQ(ends_.ends[0].where, 2u) << "peer 0 of round 1";
  ASSERT_EQ(ends_.requests.size(), 2u);
  for (const Request& request : ends_.requests) {
    EXPECT_EQ(request.notice.round, regs::kBarrierRoundCancel);
  }
  for (int i = 0; i < 4; ++i) {
    wait(kTimeoutNs);
  }
  ends_.requests.clear();
  wait(10 * kTimeoutNs);
  EXPECT_TRUE(ends_.requests.empty()) << "it gives up at last";
  EXPECT_EQ(engine_.due_ns(), ~uint64_t{0});
}

TEST_F(Engine, ACancellationIsPassedOnOnce) {
  post(two_rounds());
  ends_.requests.clear();
  EXPECT_EQ(receive(3, cancel()), Answer::kDone);
  EXPECT_EQ(last_status(), Status::kPeerFailed);
  EXPECT_EQ(ends_.ends[0].where, 2u);
  EXPECT_EQ(ends_.requests.size(), 2u);
  EXPECT_EQ(receive(2, cancel()), Answer::kDone);
  EXPECT_EQ(ends_.requests.size(), 2u);
  EXPECT_EQ(ends_.ends.size(), 1u);
}

TEST_F(Engine, AnAnswerToANotificationIsNoAnswerToACancellation) {
  post(two_rounds());
  const uint32_t tag = ends_.taken()[0].tag;
  receive(3, cancel());
  ends_.requests.clear();
  engine_.answered(now_ns_, tag, Answer::kDone);
  wait(kTimeoutNs);
  EXPECT_EQ(ends_.requests.size(), 2u);
}

TEST_F(Engine, ACancellationWaitsForItsDescriptor) {
  EXPECT_EQ(receive(3, cancel()), Answer::kDone);
  post(two_rounds());
  EXPECT_EQ(last_status(), Status::kPeerFailed);
  post(two_rounds(1, regs::BarrierOp::kLoad));
  EXPECT_EQ(receive(2, cancel(1)), Answer::kDone);
  post(two_rounds(1));
  EXPECT_EQ(last_status(), Status::kPeerFailed);
  run(2);
  EXPECT_EQ(last_status(), Status::kOk);
}

TEST_F(Engine, AHostCancelsABarrierThatItHasPostedOrNot) {
  post(two_rounds());
  ends_.requests.clear();
  post(two_rounds(0, regs::BarrierOp::kCancel));
  ASSERT_EQ(ends_.ends.size(), 2u);
  EXPECT_EQ(ends_.ends[0].status, Status::kFlushed);
  EXPECT_EQ(ends_.ends[1].status, Status::kOk);
  EXPECT_EQ(ends_.taken().size(), 2u);
  post(two_rounds(1, regs::BarrierOp::kCancel));
  EXPECT_EQ(ends_.taken().size(), 2u);
  EXPECT_EQ(receive(2, notice(0, 1)), Answer::kDone);
  EXPECT_EQ(engine_.counters().stale, 1u);
}

TEST_F(Engine, AnErrorAnswerEndsTheBarrier) {
  post(two_rounds());
  answer_all(Answer::kError);
  EXPECT_EQ(last_status(), Status::kErrorResponse);
}

TEST_F(Engine, AnAnswerToAnEarlierBarrierMeansNothing) {
  post(two_rounds());
  const uint32_t tag = ends_.requests[0].tag;
  receive(2, cancel());
  ends_.requests.clear();
  post(two_rounds(1));
  engine_.answered(now_ns_, tag, Answer::kError);
  EXPECT_EQ(ends_.ends.size(), 1u);
  engine_.answered(now_ns_, ~0u, Answer::kError);
  EXPECT_EQ(ends_.ends.size(), 1u);
}

TEST_F(Engine, AStopEndsAllBarriersAndTellsTheirPeers) {
  post(two_rounds());
  receive(2, {6, 0, 0});
  ends_.requests.clear();
  engine_.flush(now_ns_);
  EXPECT_EQ(last_status(), Status::kFlushed);
  EXPECT_EQ(ends_.requests.size(), 2u);
  EXPECT_EQ(engine_.early().size(), 0u);
}

}  // namespace
}  // namespace rio::model::barrier
