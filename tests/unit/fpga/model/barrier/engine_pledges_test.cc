// Pledges: over a way that loses nothing, the notification of a peer is the answer to one's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "fpga/model/barrier/engine.hpp"
#include "tests/unit/fpga/model/barrier/engine_descs.hpp"

namespace rio::model::barrier {
namespace {

using regs::BarrierOp;
using regs::Status;

constexpr Timing kTiming = {
    .response_timeout_ns = 1000, .retry_ns = 100, .resend_limit = 2, .own_id = 1};

class Recorder final : public Ends {
 public:
  void send(const Request& request) override { requests.push_back(request); }
  [[nodiscard]] bool send_pledge(const Request& request) override {
    if (takes_pledges) {
      pledges.push_back(request);
    }
    return takes_pledges;
  }
  void end(const Ended& ended) override { ends.push_back(ended.status); }
  void report_foreign(uint32_t source, const Notice& /*notice*/) override {
    FAIL() << source << " is foreign";
  }

  bool takes_pledges = true;
  std::vector<Request> requests;
  std::vector<Request> pledges;
  std::vector<Status> ends;
};

/// One round with peer 2.
regs::BarrierDesc one_round(uint32_t epoch, BarrierOp op = BarrierOp::kRun) {
  return desc(1, {{0, 0, 2}}, epoch, op);
}
Notice notice(uint32_t epoch, bool pledges) {
  return {5, epoch & 7, 0, pledges};
}

class Pledges : public testing::Test {
 protected:
  void post(const regs::BarrierDesc& what) { engine_.post(now_ns_, what, 0); }
  Answer receive(uint32_t epoch, bool pledges) {
    return engine_.receive(now_ns_, 2, notice(epoch, pledges));
  }
  /// Loads the plan, and runs the first barrier, which is without pledges.
  void pass_first() {
    post(one_round(1, BarrierOp::kLoad));
    post(one_round(1));
    EXPECT_TRUE(ends_.pledges.empty());
    ASSERT_EQ(ends_.requests.size(), 1u);
    EXPECT_EQ(receive(1, false), Answer::kDone);
    EXPECT_EQ(ended(), 1u) << "of the load";
    engine_.answered(now_ns_, ends_.requests[0].tag, Answer::kDone);
    ends_.requests.clear();
    EXPECT_EQ(ended(), 2u);
  }
  [[nodiscard]] size_t ended() const { return ends_.ends.size(); }
  void wait(uint64_t ns) { engine_.advance(now_ns_ += ns); }

  uint64_t now_ns_ = 0;
  EarlyRoom room_{4};
  Recorder ends_;
  BarrierEngine engine_{kTiming, ends_, room_};
};

TEST_F(Pledges, AnswerEachOther) {
  pass_first();
  post(one_round(2));
  ASSERT_EQ(ends_.pledges.size(), 1u);
  EXPECT_EQ(ends_.pledges[0].epoch, 2u);
  EXPECT_TRUE(ends_.pledges[0].notice.pledges);
  EXPECT_EQ(ended(), 2u);
  EXPECT_EQ(receive(2, true), Answer::kNone);
  EXPECT_EQ(ended(), 3u);
  EXPECT_EQ(engine_.barriers(), 0u);
  EXPECT_TRUE(ends_.requests.empty());
}

TEST_F(Pledges, ThatComeEarlyAreAnsweredAndEndTheBarrierAtItsStart) {
  pass_first();
  EXPECT_EQ(receive(2, true), Answer::kDone);
  post(one_round(2));
  EXPECT_EQ(ends_.pledges.size(), 1u);
  EXPECT_EQ(ended(), 3u);
}

TEST_F(Pledges, AreNoAnswerToANotificationThatIsNone) {
  pass_first();
  ends_.takes_pledges = false;
  post(one_round(2));
  ASSERT_EQ(ends_.requests.size(), 1u);
  EXPECT_FALSE(ends_.requests[0].notice.pledges);
  EXPECT_EQ(receive(2, true), Answer::kDone);
  EXPECT_EQ(ended(), 2u) << "it may still be refused";
  engine_.answered(now_ns_, ends_.requests[0].tag, Answer::kDone);
  EXPECT_EQ(ended(), 3u);
}

TEST_F(Pledges, NeedAnAnswerFromAPeerThatDoesNotPledge) {
  pass_first();
  post(one_round(2));
  EXPECT_EQ(receive(2, false), Answer::kDone);
  EXPECT_EQ(ended(), 2u);
  engine_.pledge_answered(now_ns_, 2, notice(2, true), 10, Answer::kDone);
  engine_.pledge_answered(now_ns_, 3, notice(2, true), 2, Answer::kDone);
  EXPECT_EQ(ended(), 2u) << "answers to another barrier, and of another card";
  engine_.pledge_answered(now_ns_, 2, notice(2, true), 2, Answer::kDone);
  EXPECT_EQ(ended(), 3u);
}

/// No honest peer sends both, but the barrier must not wait for ever.
TEST_F(Pledges, EndABarrierAlsoBehindANotificationOfTheSamePeer) {
  pass_first();
  post(one_round(2));
  EXPECT_EQ(receive(2, false), Answer::kDone);
  EXPECT_EQ(ended(), 2u);
  EXPECT_EQ(receive(2, true), Answer::kNone);
  EXPECT_EQ(ended(), 3u);
}

TEST_F(Pledges, ThatAreRefusedAreSentAgainAsNotifications) {
  pass_first();
  post(one_round(2));
  engine_.pledge_answered(now_ns_, 2, notice(2, true), 2, Answer::kRetry);
  EXPECT_EQ(receive(2, true), Answer::kDone) << "the refused one has no answer yet";
  wait(kTiming.retry_ns * 2);
  ASSERT_EQ(ends_.requests.size(), 1u);
  EXPECT_FALSE(ends_.requests[0].notice.pledges);
  EXPECT_EQ(ended(), 2u);
  engine_.answered(now_ns_, ends_.requests[0].tag, Answer::kDone);
  EXPECT_EQ(ended(), 3u);
}

TEST_F(Pledges, WithoutAnAnswerAreSentAgainAndFailAtLast) {
  pass_first();
  post(one_round(2));
  for (int i = 0; i < 4; ++i) {
    wait(kTiming.response_timeout_ns);
  }
  EXPECT_EQ(ends_.pledges.size(), 1u) << "a copy is none";
  EXPECT_GE(ends_.requests.size(), 2u);
  ASSERT_EQ(ended(), 3u);
  EXPECT_EQ(ends_.ends.back(), Status::kResponseTimeout);
}

TEST_F(Pledges, OnlyWhereTheLoadedPlanHasPassed) {
  post(one_round(1));  // no plan was loaded
  receive(1, false);
  engine_.answered(now_ns_, ends_.requests[0].tag, Answer::kDone);
  post(one_round(2));
  EXPECT_TRUE(ends_.pledges.empty());
  engine_.flush(now_ns_);
  ends_.requests.clear();
  ends_.ends.clear();
  pass_first();
  post(one_round(3));  // not the next one
  EXPECT_TRUE(ends_.pledges.empty());
  engine_.flush(now_ns_);
  ends_.requests.clear();
  ends_.ends.clear();
  pass_first();
  post(desc(1, {{0, 0, 4}}, 2));  // another plan than that
  EXPECT_TRUE(ends_.pledges.empty());
}

TEST_F(Pledges, EndWithTheBarrierThatFails) {
  pass_first();
  post(one_round(2));
  post(one_round(2, BarrierOp::kCancel));
  EXPECT_EQ(receive(2, true), Answer::kDone) << "the barrier has ended";
  post(one_round(3));
  EXPECT_EQ(ends_.pledges.size(), 1u) << "no barrier has passed before";
}

/// Members whose ways keep order. Some pledge, others do not. Two-way dissemination.
class Crowd {
 public:
  Crowd(uint32_t count, uint64_t seed) : random_(seed), ways_(size_t{count} * count) {
    for (uint32_t i = 0; i < count; ++i) {
      members_.push_back(std::make_unique<Member>(*this, i));
      members_[i]->engine.post(0, plan(i, 1, BarrierOp::kLoad), 0);
    }
  }
  /// Runs a barrier. @return how many ended with kOk before the last one arrived; ~0: some did not
  /// end with kOk.
  uint32_t run(uint32_t epoch) {
    const auto count = static_cast<uint32_t>(members_.size());
    std::vector<uint64_t> arrivals_ns(count);
    for (uint64_t& arrival_ns : arrivals_ns) {
      arrival_ns = now_ns_ + random_.below(epoch % 2 == 0 ? 100 : 2);
    }
    early_ = ended_ = arrived_ = 0;
    for (uint64_t end_ns = now_ns_ + 100'000; ended_ < count && now_ns_ < end_ns; ++now_ns_) {
      for (uint32_t i = 0; i < count; ++i) {
        if (arrivals_ns[i] == now_ns_) {
          ++arrived_;
          members_[i]->engine.post(now_ns_, plan(i, epoch, BarrierOp::kRun), 0);
        }
        members_[i]->engine.advance(now_ns_);
        deliver(i);
      }
    }
    return ended_ == count ? early_ : ~0u;
  }
  [[nodiscard]] uint32_t pledges() const { return pledges_; }
  [[nodiscard]] uint32_t answers() const { return answers_; }

 private:
  struct Member final : Ends {
    Member(Crowd& crowd, uint32_t number)
        : all(crowd), id(number), engine({1000, 100, 20, number}, *this, room) {}
    void send(const Request& request) override { all.put(id, {0, request, false}); }
    [[nodiscard]] bool send_pledge(const Request& request) override {
      const bool pledges = all.random_.below(4) != 0;
      if (pledges) {
        ++all.pledges_;
        all.put(id, {0, request, true});
      }
      return pledges;
    }
    void end(const Ended& ended) override {
      ASSERT_EQ(ended.status, Status::kOk);
      all.ended_ += all.arrived_ != 0 ? 1 : 0;
      all.early_ += all.arrived_ != all.members_.size() ? 1 : 0;
    }
    void report_foreign(uint32_t source, const Notice& /*notice*/) override {
      FAIL() << source << " is foreign to " << id;
    }
    Crowd& all;
    uint32_t id;
    EarlyRoom room{0};
    BarrierEngine engine;
  };
  struct Packet {
    uint64_t at_ns;
    Request request;
    bool pledges;
    Answer answer = Answer::kDone;
  };
  /// From one member to another: answers have a way of their own.
  struct Way {
    std::deque<Packet> requests;
    std::deque<Packet> answers;
  };

  [[nodiscard]] regs::BarrierDesc plan(uint32_t i, uint32_t epoch, BarrierOp op) const {
    const uint32_t count = size();
    std::vector<test::PeerOfRound> peers;
    uint32_t rounds = 0;
    for (uint32_t stride = 1; stride < count; stride *= 3) {
      const uint32_t after = (i + stride) % count;
      const uint32_t before = (i + count - stride % count) % count;
      peers.push_back({rounds, 0, after});
      if (before != after) {
        peers.push_back({rounds, 1, before});
      }
      ++rounds;
    }
    return desc(rounds, peers, epoch, op);
  }
  [[nodiscard]] uint32_t size() const {
    uint32_t count = 0;
    for (; size_t{count} * count < ways_.size(); ++count) {
    }
    return count;
  }
  Way& way(uint32_t from, uint32_t to) { return ways_[size_t{from} * size() + to]; }
  void push(std::deque<Packet>& queue, Packet packet) {
    const uint64_t before_ns = queue.empty() ? 0 : queue.back().at_ns;
    packet.at_ns = std::max(before_ns, now_ns_ + 1 + random_.below(40));
    queue.push_back(packet);
  }
  void put(uint32_t from, const Packet& packet) {
    push(way(from, packet.request.dest_id).requests, packet);
  }
  void deliver(uint32_t to) {
    BarrierEngine& engine = members_[to]->engine;
    for (uint32_t from = 0; from < members_.size(); ++from) {
      Way& in = way(from, to);
      for (; !in.answers.empty() && in.answers.front().at_ns <= now_ns_; in.answers.pop_front()) {
        const Packet& packet = in.answers.front();
        if (packet.pledges) {
          engine.pledge_answered(now_ns_, from, packet.request.notice, packet.request.epoch,
                                 packet.answer);
        } else {
          engine.answered(now_ns_, packet.request.tag, packet.answer);
        }
      }
      for (; !in.requests.empty() && in.requests.front().at_ns <= now_ns_;
           in.requests.pop_front()) {
        Packet packet = in.requests.front();
        packet.answer = engine.receive(now_ns_, from, packet.request.notice);
        if (packet.answer != Answer::kNone) {
          ++answers_;
          push(way(to, from).answers, packet);
        }
      }
    }
  }

  base::Random random_;
  std::vector<Way> ways_;
  std::vector<std::unique_ptr<Member>> members_;
  uint64_t now_ns_ = 0;
  uint32_t ended_ = 0;
  uint32_t early_ = 0;
  uint32_t arrived_ = 0;
  uint32_t pledges_ = 0;
  uint32_t answers_ = 0;
};

TEST(EnginePledges, NoneEndsBeforeTheLastArrivesAndNoneIsLeftBehind) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Crowd crowd(2 + static_cast<uint32_t>(seed % 6), seed);
    for (uint32_t epoch = 1; epoch < 50; ++epoch) {
      ASSERT_EQ(crowd.run(epoch), 0u) << "seed " << seed << ", epoch " << epoch;
    }
    EXPECT_GT(crowd.pledges(), 50u);
    EXPECT_GT(crowd.answers(), 20u);
  }
}

}  // namespace
}  // namespace rio::model::barrier
