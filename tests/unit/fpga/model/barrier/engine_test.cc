#include "fpga/model/barrier/engine.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.hpp"

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
  /// Takes the requests so far.
  std::vector<Request> taken() { return std::exchange(requests, {}); }

  std::vector<Request> requests;
  std::vector<Ended> ends;
  std::vector<uint32_t> foreign;
};

/// A peer of a round, and what it is sent or awaited.
struct Way {
  uint32_t round;
  uint32_t which;
  uint32_t peer;
  bool send = true;
  bool await = true;
};
regs::BarrierDesc desc(uint32_t rounds, const std::vector<Way>& ways, uint32_t epoch = 0,
                       regs::BarrierOp op = regs::BarrierOp::kRun) {
  using Control = regs::barrier_desc::Control;
  regs::BarrierDesc out{};
  out.control = Control::op.put(static_cast<uint32_t>(op)) | Control::rounds.put(rounds);
  out.group = 5;
  out.epoch = epoch;
  out.cookie = 77;
  std::fill(std::begin(out.peers), std::end(out.peers), ~0u);
  for (const Way& way : ways) {
    const uint32_t place = 2 * way.round + way.which;
    out.peers[place] = way.peer;
    out.send |= uint64_t{way.send} << place;
    out.await |= uint64_t{way.await} << place;
  }
  return out;
}
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
  void post(const regs::BarrierDesc& what) { engine.post(now_ns, what, 9); }
  Answer receive(uint32_t source, const Notice& what) {
    return engine.receive(now_ns, source, what);
  }
  /// Answers all requests that were sent.
  void answer_all(Answer answer = Answer::kDone) {
    for (const Request& request : ends.taken()) {
      engine.answered(now_ns, request.tag, answer);
    }
  }
  void wait(uint64_t ns) { engine.advance(now_ns += ns); }
  /// Runs the barrier of two_rounds() to its end.
  void run(uint32_t epoch) {
    post(two_rounds(epoch));
    EXPECT_EQ(receive(2, notice(0, epoch)), Answer::kDone);
    EXPECT_EQ(receive(3, notice(1, epoch)), Answer::kDone);
    answer_all();
  }
  [[nodiscard]] Status last_status() const { return ends.ends.back().status; }

  uint64_t now_ns = 0;
  EarlyRoom room{4};
  Recorder ends;
  BarrierEngine engine{
      {.response_timeout_ns = kTimeoutNs, .retry_ns = kRetryNs, .resend_limit = 2, .own_id = 1},
      ends,
      room};
};

TEST_F(Engine, SendsARoundOnceAllEarlierOnesHaveArrived) {
  post(two_rounds());
  ASSERT_EQ(ends.requests.size(), 1u);
  EXPECT_EQ(ends.requests[0].dest_id, 2u);
  EXPECT_EQ(ends.requests[0].notice.info(), 0x8500);
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);  // a later round does not count for this one
  EXPECT_EQ(ends.requests.size(), 1u);
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  ASSERT_EQ(ends.requests.size(), 2u);
  EXPECT_EQ(ends.requests[1].notice.info(), 0x8501);
  EXPECT_TRUE(ends.ends.empty());  // two answers are missing
  answer_all();
  ASSERT_EQ(ends.ends.size(), 1u);
  EXPECT_EQ(ends.ends[0].status, Status::kOk);
  EXPECT_EQ(ends.ends[0].cookie, 77u);
  EXPECT_EQ(ends.ends[0].index, 9u);
}

TEST_F(Engine, DoesNotEndBeforeTheLastNotification) {
  post(two_rounds());
  receive(2, notice(0));
  answer_all();
  EXPECT_TRUE(ends.ends.empty());
  receive(3, notice(1));
  EXPECT_EQ(last_status(), Status::kOk);
}

TEST_F(Engine, ACopyChangesNothing) {
  post(two_rounds());
  receive(2, notice(0));
  receive(2, notice(0));
  EXPECT_EQ(ends.requests.size(), 2u);
  EXPECT_EQ(engine.counters().sent, 2u);
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
  EXPECT_EQ(ends.ends.size(), bad.size());
  EXPECT_TRUE(ends.requests.empty());
  post(desc(1, {{0, 0, 2, true, false}, {0, 1, 2, false, true}}));  // both peers are one node
  EXPECT_EQ(ends.ends.size(), bad.size());
}

TEST_F(Engine, AGroupHasOneBarrierAtATime) {
  post(two_rounds());
  post(two_rounds(1));
  EXPECT_EQ(last_status(), Status::kBadDescriptor);
}

TEST_F(Engine, KeepsWhatArrivesBeforeItsDescriptor) {
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);
  EXPECT_EQ(receive(2, notice(0)), Answer::kDone);  // a copy takes no room
  EXPECT_EQ(receive(3, notice(1)), Answer::kDone);
  EXPECT_EQ(engine.early().size(), 2u);
  post(two_rounds());
  EXPECT_EQ(engine.early().size(), 0u);
  answer_all();
  EXPECT_EQ(last_status(), Status::kOk);
}

TEST_F(Engine, AnEarlyNotificationOfAForeignSourceDoesNotCount) {
  receive(4, notice(0));
  receive(3, notice(1));
  post(two_rounds());
  answer_all();
  EXPECT_EQ(ends.foreign, std::vector<uint32_t>{4});
  EXPECT_TRUE(ends.ends.empty());
}

TEST_F(Engine, AnswersRetryWithoutRoomAndNeverToAPostedBarrier) {
  for (uint32_t source = 10; source < 14; ++source) {
    EXPECT_EQ(receive(source, {6, 0, 0}), Answer::kDone);
  }
  EXPECT_EQ(receive(2, notice(0)), Answer::kRetry);
  EXPECT_EQ(engine.counters().nacks_given, 1u);
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
  EXPECT_EQ(ends.ends.size(), 3u);
}

TEST_F(Engine, AReserveKeepsRoomFromOtherEngines) {
  Recorder other_ends;
  BarrierEngine other({kTimeoutNs, kRetryNs, 2, 2}, other_ends, room);
  engine.early().reserve(3);
  EXPECT_EQ(other.receive(0, 2, {6, 0, 0}), Answer::kDone);
  EXPECT_EQ(other.receive(0, 3, {6, 0, 0}), Answer::kRetry);
  for (uint32_t source = 10; source < 13; ++source) {
    EXPECT_EQ(receive(source, {6, 0, 0}), Answer::kDone);
  }
  EXPECT_EQ(receive(13, {6, 0, 0}), Answer::kRetry);
  engine.early().reserve(0);
  engine.flush(0);
  EXPECT_EQ(other.receive(0, 3, {6, 0, 0}), Answer::kDone);
}

TEST_F(Engine, DropsNotificationsOfTheLastThreeEpochs) {
  for (uint32_t epoch = 6; epoch < 10; ++epoch) {
    run(epoch);
  }
  for (const uint32_t epoch : {9u, 8u, 7u}) {
    EXPECT_EQ(receive(2, notice(0, epoch)), Answer::kDone);
  }
  EXPECT_EQ(engine.counters().stale, 3u);
  EXPECT_EQ(receive(2, notice(0, 11)), Answer::kError) << "two epochs ahead";
  EXPECT_EQ(receive(2, notice(0, 10)), Answer::kDone);
  EXPECT_EQ(engine.counters().early, 1u);
}

TEST_F(Engine, AnswersErrorToAForeignSource) {
  post(two_rounds());
  EXPECT_EQ(receive(4, notice(0)), Answer::kError);
  EXPECT_EQ(receive(2, notice(1)), Answer::kError) << "another round's peer";
  EXPECT_EQ(receive(2, notice(21)), Answer::kError);
  EXPECT_EQ(receive(4, cancel()), Answer::kError);
  EXPECT_EQ(engine.counters().foreign, 4u);
  EXPECT_TRUE(ends.ends.empty());
}

TEST_F(Engine, RetriesLaterEachTime) {
  post(two_rounds());
  uint64_t delay_ns = kRetryNs;
  for (int i = 0; i < 9; ++i) {
    answer_all(Answer::kRetry);
    const uint64_t before_ns = now_ns;
    while (ends.requests.empty()) {
      wait(engine.due_ns() - now_ns);
    }
    EXPECT_GE(now_ns - before_ns, delay_ns);
    EXPECT_LE(now_ns - before_ns, delay_ns + delay_ns / 4);
    delay_ns = std::min(2 * delay_ns, 64 * kRetryNs);
  }
  receive(2, notice(0));
  receive(3, notice(1));
  answer_all();
  EXPECT_EQ(last_status(), Status::kOk) << "a retry is no resend";
  EXPECT_EQ(ends.ends[0].retries, 9u);
}

TEST_F(Engine, AResendHoldsTheEndBackForTwoTimeouts) {
  post(two_rounds());
  wait(kTimeoutNs);
  EXPECT_EQ(ends.requests.size(), 2u);
  EXPECT_EQ(engine.counters().resent, 1u);
  receive(2, notice(0));
  receive(3, notice(1));
  answer_all();
  EXPECT_TRUE(ends.ends.empty());
  wait(2 * kTimeoutNs - 1);
  EXPECT_TRUE(ends.ends.empty());
  wait(1);
  ASSERT_EQ(ends.ends.size(), 1u);
  EXPECT_EQ(ends.ends[0].status, Status::kOk);
  EXPECT_EQ(ends.ends[0].resent, 1u);
}

TEST_F(Engine, ASilentPeerEndsTheBarrierAndAllPeersAreTold) {
  post(two_rounds());
  receive(2, notice(0));
  engine.answered(now_ns, ends.requests[0].tag, Answer::kDone);
  for (int i = 0; i < 3; ++i) {
    ends.requests.clear();
    wait(kTimeoutNs);
  }
  ASSERT_EQ(ends.ends.size(), 1u);
  EXPECT_EQ(ends.ends[0].status, Status::kResponseTimeout);
  EXPECT_EQ(ends.ends[0].where, 2u) << "peer 0 of round 1";
  ASSERT_EQ(ends.requests.size(), 2u);
  for (const Request& request : ends.requests) {
    EXPECT_EQ(request.notice.round, regs::kBarrierRoundCancel);
  }
  for (int i = 0; i < 4; ++i) {
    wait(kTimeoutNs);
  }
  ends.requests.clear();
  wait(10 * kTimeoutNs);
  EXPECT_TRUE(ends.requests.empty()) << "it gives up at last";
  EXPECT_EQ(engine.due_ns(), ~uint64_t{0});
}

TEST_F(Engine, ACancellationIsPassedOnOnce) {
  post(two_rounds());
  ends.requests.clear();
  EXPECT_EQ(receive(3, cancel()), Answer::kDone);
  EXPECT_EQ(last_status(), Status::kPeerFailed);
  EXPECT_EQ(ends.ends[0].where, 2u);
  EXPECT_EQ(ends.requests.size(), 2u);
  EXPECT_EQ(receive(2, cancel()), Answer::kDone);
  EXPECT_EQ(ends.requests.size(), 2u);
  EXPECT_EQ(ends.ends.size(), 1u);
}

TEST_F(Engine, AnAnswerToANotificationIsNoAnswerToACancellation) {
  post(two_rounds());
  const uint32_t tag = ends.taken()[0].tag;
  receive(3, cancel());
  ends.requests.clear();
  engine.answered(now_ns, tag, Answer::kDone);
  wait(kTimeoutNs);
  EXPECT_EQ(ends.requests.size(), 2u);
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
  ends.requests.clear();
  post(two_rounds(0, regs::BarrierOp::kCancel));
  ASSERT_EQ(ends.ends.size(), 2u);
  EXPECT_EQ(ends.ends[0].status, Status::kFlushed);
  EXPECT_EQ(ends.ends[1].status, Status::kOk);
  EXPECT_EQ(ends.taken().size(), 2u);
  post(two_rounds(1, regs::BarrierOp::kCancel));
  EXPECT_EQ(ends.taken().size(), 2u);
  EXPECT_EQ(receive(2, notice(0, 1)), Answer::kDone);
  EXPECT_EQ(engine.counters().stale, 1u);
}

TEST_F(Engine, AnErrorAnswerEndsTheBarrier) {
  post(two_rounds());
  answer_all(Answer::kError);
  EXPECT_EQ(last_status(), Status::kErrorResponse);
}

TEST_F(Engine, AnAnswerToAnEarlierBarrierMeansNothing) {
  post(two_rounds());
  const uint32_t tag = ends.requests[0].tag;
  receive(2, cancel());
  ends.requests.clear();
  post(two_rounds(1));
  engine.answered(now_ns, tag, Answer::kError);
  EXPECT_EQ(ends.ends.size(), 1u);
  engine.answered(now_ns, ~0u, Answer::kError);
  EXPECT_EQ(ends.ends.size(), 1u);
}

TEST_F(Engine, AStopEndsAllBarriersAndTellsTheirPeers) {
  post(two_rounds());
  receive(2, {6, 0, 0});
  ends.requests.clear();
  engine.flush(now_ns);
  EXPECT_EQ(last_status(), Status::kFlushed);
  EXPECT_EQ(ends.requests.size(), 2u);
  EXPECT_EQ(engine.early().size(), 0u);
}

/// Members of a classic dissemination on a network that loses, copies, delays and reorders.
class Members {
 public:
  Members(uint32_t count, uint64_t seed) : random_(seed) {
    for (uint32_t i = 0; i < count; ++i) {
      members_.push_back(std::make_unique<Member>(*this, i));
    }
  }
  /// Runs one barrier. @return how many members ended with kOk before the last one arrived; ~0:
  /// some did not end with kOk.
  uint32_t run(uint32_t epoch) {
    const auto count = static_cast<uint32_t>(members_.size());
    uint32_t rounds = 0;
    for (; 1u << rounds < count; ++rounds) {
    }
    std::vector<uint64_t> arrivals_ns(count);
    for (uint64_t& arrival_ns : arrivals_ns) {
      arrival_ns = now_ns_ + random_.below(3000);
    }
    early_ = ended_ = arrived_ = 0;
    for (uint64_t end_ns = now_ns_ + 1'000'000; ended_ < count && now_ns_ < end_ns; ++now_ns_) {
      for (uint32_t i = 0; i < count; ++i) {
        if (arrivals_ns[i] == now_ns_) {
          ++arrived_;
          std::vector<Way> ways;
          for (uint32_t r = 0; r < rounds; ++r) {
            ways.push_back({r, 0, (i + (1u << r)) % count, true, false});
            ways.push_back({r, 1, (i + count - (1u << r)) % count, false, true});
          }
          members_[i]->engine.post(now_ns_, desc(rounds, ways, epoch), 0);
        }
        members_[i]->engine.advance(now_ns_);
      }
      deliver();
    }
    return ended_ == count ? early_ : ~0u;
  }
  uint32_t resent() const {
    uint32_t sum = 0;
    for (const auto& member : members_) {
      sum += member->engine.counters().resent;
    }
    return sum;
  }

 private:
  struct Member final : Ends {
    Member(Members& members, uint32_t number)
        : all(members), id(number), engine({kTimeoutNs, kRetryNs, 20, number}, *this, room) {}
    void send(const Request& request) override { all.send(*this, request); }
    void end(const Ended& ended) override {
      ASSERT_EQ(ended.status, Status::kOk);
      ++all.ended_;
      all.early_ += all.arrived_ != all.members_.size() ? 1 : 0;
    }
    void report_foreign(uint32_t source, const Notice& /*notice*/) override {
      FAIL() << source << " is foreign to " << id;
    }
    Members& all;
    uint32_t id;
    EarlyRoom room{3};
    BarrierEngine engine;
  };
  struct Packet {
    uint64_t at_ns;
    uint32_t from;
    Request request;
    bool is_answer;
    Answer answer;
  };

  void send(const Member& from, const Request& request) {
    put({0, from.id, request, false, Answer::kDone});
  }
  void put(Packet packet) {
    if (random_.below(20) == 0) {
      return;  // lost
    }
    const uint32_t copies = random_.below(20) == 0 && !packet.is_answer ? 2 : 1;
    for (uint32_t i = 0; i < copies; ++i) {
      packet.at_ns = now_ns_ + 1 + random_.below(400);
      packets_.push_back(packet);
    }
  }
  void deliver() {
    const std::vector<Packet> all = std::exchange(packets_, {});
    for (const Packet& packet : all) {
      if (packet.at_ns > now_ns_) {
        packets_.push_back(packet);
      } else if (packet.is_answer) {
        members_[packet.from]->engine.answered(now_ns_, packet.request.tag, packet.answer);
      } else {
        Packet answer = packet;
        answer.is_answer = true;
        answer.answer = members_[packet.request.dest_id]->engine.receive(now_ns_, packet.from,
                                                                         packet.request.notice);
        put(answer);
      }
    }
  }

  base::Random random_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Packet> packets_;
  uint64_t now_ns_ = 0;
  uint32_t ended_ = 0;
  uint32_t early_ = 0;
  uint32_t arrived_ = 0;
};

TEST(EngineMembers, NoneEndsBeforeTheLastArrivesOnABadNetwork) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Members members(3 + static_cast<uint32_t>(seed), seed);
    for (uint32_t epoch = 0; epoch < 20; ++epoch) {
      ASSERT_EQ(members.run(epoch), 0u) << "seed " << seed << ", epoch " << epoch;
    }
    EXPECT_GT(members.resent(), 0u);
  }
}

}  // namespace
}  // namespace rio::model::barrier
