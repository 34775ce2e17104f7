// Many barriers of model cards under faults of the cards and of the network, with members that come
// late or never: each member is told how its barrier ended within a bound, and none passes one at
// which a member has not arrived.
//
// RIO_BARRIERS: how many; RIO_SEED: the seed.
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "base/random.hpp"
#include "lib/barrier/scheme.hpp"
#include "tests/support/env_number.hpp"
#include "tests/support/network_cards.hpp"
#include "tests/support/seed.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kCards = 32;
constexpr const char* kTopology = "torus:4x4x2";
constexpr uint32_t kTimeoutUs = 200;
constexpr uint64_t kTimeoutNs = kTimeoutUs * 1000;
constexpr uint64_t kSkewNs = 5000;
/// A host cancels a barrier that takes longer.
constexpr uint64_t kDeadlineNs = 20 * kTimeoutNs;
/// A member that is not told within this time hangs.
constexpr uint64_t kBoundNs = kDeadlineNs + 30 * kTimeoutNs;
constexpr uint64_t kSliceNs = 2000;
constexpr uint32_t kGroups = barrier::kGroupMax + 1;

class Storm {
 public:
  explicit Storm(uint64_t seed)
      : random_(seed), cards_(kTopology, config(seed), rings(), settings(seed), kTimeoutUs) {
    for (const char* const text : {"classic", "two-way", "torus:4x4x2", "tree"}) {
      std::string error;
      EXPECT_EQ(barrier::parse_scheme(text, &schemes_.emplace_back(), &error), 0) << error;
    }
    cards_.after_step([this](uint32_t node) { look(node); });
  }
  ~Storm() { cards_.after_step(nullptr); }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  void barrier() {
    begin();
    bool has_cancelled = false;
    while (!all_ended() && time_ns_ < begin_ns_ + kBoundNs) {
      run(kSliceNs);
      if (!has_cancelled && time_ns_ > begin_ns_ + kDeadlineNs) {
        has_cancelled = true;
        cancel_all();
      }
    }
    count();
    if (failed_now_ != 0) {
      form_group();
    }
  }

  uint64_t passed = 0;      ///< barriers that a member passed, of all members
  uint64_t failed = 0;      ///< members that were told of a failure
  uint64_t violations = 0;  ///< members that passed before the last one had arrived
  uint64_t hangs = 0;       ///< members that were told nothing
  uint64_t dead = 0;        ///< members that never arrived

 private:
  enum class Stage : uint8_t { kAbsent, kArrived, kEnded };
  struct Member {
    Stage stage = Stage::kAbsent;
    uint64_t arrives_ns = 0;  ///< ~0: never
  };

  static model::Config config(uint64_t seed) {
    model::Config out;
    out.faults = {.seed = seed, .rate = 0.0002};
    out.early_notices = 8;
    return out;
  }
  static pmd::QueuePairConfig rings() {
    pmd::QueuePairConfig out;
    out.rings = pmd::ring_bit(regs::Ring::kEvent);
    out.barriers = true;
    return out;
  }
  static sim::CardNetworkSettings settings(uint64_t seed) {
    sim::CardNetworkSettings out;
    out.network.seed = seed;
    out.network.classes[0].loss_rate = 0.0002;
    out.tick_ns = kTimeoutNs / 8;
    return out;
  }

  void run(uint64_t ns) {
    time_ns_ += ns;
    cards_.run(time_ns_);
  }
  /// After a failure the members do not know the epochs of the others: they form another group, of
  /// which some tell their cards first. Cards that have used all numbers have to forget them.
  void form_group() {
    group_ = (group_ + 1) % kGroups;
    run(2 * kTimeoutNs);
    if (group_ == 0) {
      reopen();
    }
    is_loaded_ = random_.below(2) == 0;
    for (uint32_t node = 0; is_loaded_ && node < kCards; ++node) {
      post(node, regs::BarrierOp::kLoad, epoch_ + 1);
      cards_.step(node);
    }
  }
  void reopen() {
    cards_.after_step(nullptr);
    for (uint32_t node = 0; node < kCards; ++node) {
      ASSERT_EQ(cards_.pair(node).close_barriers(), 0) << "node " << node;
    }
    for (uint32_t node = 0; node < kCards; ++node) {
      ASSERT_EQ(cards_.pair(node).open_barriers(), 0) << "node " << node;
    }
    cards_.after_step([this](uint32_t node) { look(node); });
  }
  void begin() {
    ++epoch_;
    time_ns_ = std::max(time_ns_, cards_.now_ns());
    begin_ns_ = time_ns_;
    arrived_ = 0;
    passed_now_ = failed_now_ = 0;
    if (!is_loaded_) {  // a group that is loaded keeps its schedule
      scheme_ = random_.below(static_cast<uint32_t>(schemes_.size()));
    }
    const uint32_t absent = random_.chance(0.002) ? random_.below(kCards) : kCards;
    dead += absent < kCards ? 1 : 0;
    for (uint32_t node = 0; node < kCards; ++node) {
      const uint64_t arrives_ns = begin_ns_ + random_.below(kSkewNs);
      members_[node] = {Stage::kAbsent, node == absent ? ~uint64_t{0} : arrives_ns};
      if (node != absent) {
        cards_.network().step_at(arrives_ns, node);
      }
    }
    expected_ = kCards - (absent < kCards ? 1 : 0);
  }
  void post(uint32_t node, regs::BarrierOp op, uint32_t epoch) {
    barrier::Schedule schedule;
    regs::BarrierDesc desc{};
    ASSERT_EQ(barrier::make_schedule(schemes_[scheme_], kCards, node, &schedule), 0);
    ASSERT_EQ(barrier::write_descriptor(
                  schedule, {.group = group_, .op = op},
                  [](uint32_t rank) { return NetworkCards::id(rank); }, &desc),
              0);
    const uint64_t cookie = uint64_t{epoch} << 1 | (op == regs::BarrierOp::kRun ? 0 : 1);
    const pmd::BarrierRequest request{&desc, cookie, epoch};
    ASSERT_EQ(cards_.pair(node).barriers().post(&request, 1), 1);
  }
  void look(uint32_t node) {
    Member& member = members_[node];
    if (member.stage == Stage::kAbsent && cards_.now_ns() >= member.arrives_ns) {
      member.stage = Stage::kArrived;
      ++arrived_;
      post(node, regs::BarrierOp::kRun, epoch_);
    }
    pmd::BarrierDone done;
    while (cards_.pair(node).barriers().reap(&done, 1) == 1) {
      if (done.cookie != uint64_t{epoch_} << 1) {
        continue;  // the completion of a cancel or a load
      }
      EXPECT_EQ(member.stage, Stage::kArrived) << "node " << node;
      member.stage = Stage::kEnded;
      (done.status == pmd::Status::kOk ? passed_now_ : failed_now_) += 1;
      violations += done.status == pmd::Status::kOk && arrived_ != kCards ? 1 : 0;
    }
  }
  void cancel_all() {
    for (uint32_t node = 0; node < kCards; ++node) {
      if (members_[node].stage == Stage::kArrived) {
        post(node, regs::BarrierOp::kCancel, epoch_);
        cards_.step(node);
      }
    }
  }
  [[nodiscard]] bool all_ended() const { return passed_now_ + failed_now_ == expected_; }
  void count() {
    passed += passed_now_;
    failed += failed_now_;
    hangs += expected_ - passed_now_ - failed_now_;
  }

  base::Random random_;
  NetworkCards cards_;
  std::vector<barrier::Scheme> schemes_;
  std::array<Member, kCards> members_{};
  uint64_t time_ns_ = 0;  // until when the network has run
  uint64_t begin_ns_ = 0;
  size_t scheme_ = 0;
  uint32_t group_ = 0;
  bool is_loaded_ = false;  // the cards know the group's schedule before its barriers
  uint32_t epoch_ = 0;
  uint32_t expected_ = 0;  // members that arrive
  uint32_t arrived_ = 0;
  uint32_t passed_now_ = 0;
  uint32_t failed_now_ = 0;
};

TEST(Storm, NoneHangsAndNonePassesEarly) {
  const uint64_t count = env_number("RIO_BARRIERS", 1000);
  Storm storm(first_seed());
  for (uint64_t i = 0; i < count && storm.hangs == 0 && storm.violations == 0; ++i) {
    storm.barrier();
  }
  std::printf("barriers %llu passed %llu failed %llu dead %llu violations %llu hangs %llu\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(storm.passed),
              static_cast<unsigned long long>(storm.failed),
              static_cast<unsigned long long>(storm.dead),
              static_cast<unsigned long long>(storm.violations),
              static_cast<unsigned long long>(storm.hangs));
  EXPECT_EQ(storm.violations, 0u);
  EXPECT_EQ(storm.hangs, 0u);
  EXPECT_GT(storm.passed, 0u);
  EXPECT_GT(storm.failed, 0u);
}

}  // namespace
}  // namespace rio::test
