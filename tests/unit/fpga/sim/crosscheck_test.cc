// The simulator's barriers against model cards with the real driver on the same network: each node
// leaves at the same nanosecond.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fpga/sim/barrier_world.hpp"
#include "lib/barrier/scheme.hpp"
#include "tests/support/network_cards.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kRoundNs = 200'000;  // longer than a barrier
constexpr uint32_t kBarriers = 3;
constexpr uint32_t kGroup = 5;

struct Case {
  const char* topology;
  const char* scheme;
  bool exact = false;  // the cards are in exact mode
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.scheme << " on " << value.topology << (value.exact ? ", exact" : "");
}

class Crosscheck : public testing::TestWithParam<Case>, private sim::BarrierWorld::Schedules {
 protected:
  void SetUp() override {
    std::string error;
    ASSERT_EQ(barrier::parse_scheme(GetParam().scheme, &scheme_, &error), 0) << error;
  }
  [[nodiscard]] regs::BarrierDesc descriptor(uint32_t node, uint32_t first_id) const {
    barrier::Schedule schedule;
    regs::BarrierDesc desc{};
    EXPECT_EQ(barrier::make_schedule(scheme_, nodes_, node, &schedule), 0);
    EXPECT_EQ(barrier::write_descriptor(
                  schedule, {.group = kGroup, .epoch = epoch_, .cookie = node},
                  [=](uint32_t rank) { return first_id + rank; }, &desc),
              0);
    return desc;
  }
  void describe(uint32_t node, regs::BarrierDesc* out) override { *out = descriptor(node, 0); }

  /// Times from the begin of each barrier until each node has left it. Node i arrives i times the
  /// skew after the begin.
  [[nodiscard]] std::vector<uint64_t> simulated(uint64_t skew_ns) {
    sim::NetworkTopology shape;
    std::unique_ptr<sim::BarrierWorld> world;
    std::string error;
    EXPECT_EQ(sim::NetworkTopology::create(GetParam().topology, &shape, &error), 0) << error;
    EXPECT_EQ(sim::BarrierWorld::create(std::move(shape), {}, &world, &error), 0) << error;
    nodes_ = world->network().topology().nodes();
    std::vector<uint64_t> delays_ns(nodes_);
    for (uint32_t node = 0; node < nodes_; ++node) {
      delays_ns[node] = node * skew_ns;
    }
    std::vector<uint64_t> out_ns;
    for (epoch_ = 1; epoch_ <= kBarriers; ++epoch_) {
      const uint64_t begin_ns = world->network().now();
      const sim::BarrierOutcome outcome = world->run(*this, delays_ns, kSecondNs);
      EXPECT_EQ(outcome.ended, nodes_);
      for (uint32_t node = 0; node < nodes_; ++node) {
        out_ns.push_back(world->exit_ns(node) - begin_ns);
      }
    }
    return out_ns;
  }

  [[nodiscard]] std::vector<uint64_t> on_cards(uint64_t skew_ns) {
    model::Config config;
    config.exact = GetParam().exact;
    pmd::QueuePairConfig rings;
    rings.rings = pmd::ring_bit(regs::Ring::kEvent);
    rings.barriers = true;
    NetworkCards cards(GetParam().topology, config, rings);
    EXPECT_EQ(cards.nodes(), nodes_);
    std::vector<uint64_t> out_ns;
    for (epoch_ = 1; epoch_ <= kBarriers; ++epoch_) {
      const uint64_t begin_ns = (cards.now_ns() / kRoundNs + 2) * kRoundNs;
      std::vector<uint64_t> exits_ns(nodes_);
      std::vector<bool> has_posted(nodes_);
      cards.after_step([&](uint32_t node) {
        if (!has_posted[node] && cards.now_ns() == begin_ns + node * skew_ns) {
          has_posted[node] = true;
          const regs::BarrierDesc desc = descriptor(node, NetworkCards::id(0));
          const pmd::BarrierRequest request{&desc, node, epoch_};
          EXPECT_EQ(cards.pair(node).barriers().post(&request, 1), 1);
        }
        pmd::BarrierDone done;
        if (cards.pair(node).barriers().reap(&done, 1) == 1) {
          EXPECT_EQ(done.status, pmd::Status::kOk);
          exits_ns[node] = cards.now_ns() - begin_ns;
        }
      });
      for (uint32_t node = 0; node < nodes_; ++node) {
        cards.network().step_at(begin_ns + node * skew_ns, node);
      }
      cards.run(begin_ns + kRoundNs);
      cards.after_step(nullptr);
      EXPECT_EQ(cards.network().overflows(), 0u);
      out_ns.insert(out_ns.end(), exits_ns.begin(), exits_ns.end());
    }
    return out_ns;
  }

 private:
  barrier::Scheme scheme_;
  uint32_t nodes_ = 0;
  uint32_t epoch_ = 0;
};

TEST_P(Crosscheck, AllArriveAtOnce) {
  const std::vector<uint64_t> expected_ns = simulated(0);
  EXPECT_EQ(on_cards(0), expected_ns);
}
TEST_P(Crosscheck, OneAfterTheOther) {
  const std::vector<uint64_t> expected_ns = simulated(37);
  EXPECT_EQ(on_cards(37), expected_ns);
}

INSTANTIATE_TEST_SUITE_P(
    Cards, Crosscheck,
    testing::Values(Case{"torus:2", "classic"}, Case{"torus:3", "torus:3"},
                    Case{"torus:4", "two-way"}, Case{"torus:5", "classic"},
                    Case{"torus:2x4", "torus:2x4"}, Case{"torus:3x3", "torus:3x3"},
                    Case{"torus:3x3", "two-way", true}, Case{"torus:3x3x3", "torus:3x3x3"},
                    Case{"torus:4x7", "tree"}, Case{"torus:9x9", "dimensions:9x9"},
                    Case{"mesh:9x9", "mesh:9x9"}, Case{"torus:8x4x4", "classic"},
                    Case{"torus:8x4x4", "torus:8x4x4"}));

}  // namespace
}  // namespace rio::test
