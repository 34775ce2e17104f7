#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fpga/model/barrier/engine.hpp"
#include "tests/unit/fpga/model/barrier/engine_descs.hpp"

namespace rio::model::barrier {
namespace {

using regs::Status;

constexpr uint64_t kTimeoutNs = 1000;
constexpr uint64_t kRetryNs = 100;

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
          std::vector<test::PeerOfRound> peers;
          for (uint32_t r = 0; r < rounds; ++r) {
            peers.push_back({r, 0, (i + (1u << r)) % count, true, false});
            peers.push_back({r, 1, (i + count - (1u << r)) % count, false, true});
          }
          members_[i]->engine.post(now_ns_, desc(rounds, peers, epoch), 0);
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
