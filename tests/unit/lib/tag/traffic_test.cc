// Random traffic of all sizes from 0 to 16 MiB, at all alignments, over cards of every kind and
// with every fault, against a simple reference: a queue for each sender, receiver and match bits.
//
// RIO_TAG_SEEDS: how many seeds of each kind; RIO_TAG_SEED: the first.
#include <cstdio>

#include "tests/unit/fpga/sim/temp_dir.hpp"
#include "tests/unit/lib/tag/traffic.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kBudgetBytes = 6u << 20;

/// @return two cards on a wire of their own.
[[nodiscard]] std::vector<std::string> pair(uint64_t seed, const std::string& options = "") {
  return {2, "emu:tag" + std::to_string(seed) + options};
}
[[nodiscard]] std::string faults(uint64_t seed, const std::string& rate) {
  return ",faults=" + std::to_string(seed) + ":" + rate;
}
[[nodiscard]] std::string pcie(uint64_t seed) {
  return ",pcie=" + std::to_string(seed | 1u);
}

class TagTraffic : public testing::Test {
 protected:
  TagTraffic() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~TagTraffic() override { unsetenv("RIO_RUNTIME_DIR"); }

  /// @param otherwise how many seeds unless RIO_TAG_SEEDS says.
  template <class Each>
  static void each_seed(uint64_t otherwise, Each&& each) {
    const uint64_t first = from_environment("RIO_TAG_SEED", std::random_device()());
    const uint64_t count = from_environment("RIO_TAG_SEEDS", otherwise);
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
      std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
      each(seed);
    }
  }
  static TrafficPlan plan(uint64_t seed, uint32_t steps, std::vector<std::string> cards) {
    TrafficPlan out;
    out.cards = std::move(cards);
    out.first_id = 5;
    out.seed = seed;
    out.steps = steps;
    out.budget_bytes = kBudgetBytes;
    return out;
  }
  /// Traffic, with a message of 16 MiB, or a byte more or less, in the middle of it.
  static void run(const TrafficPlan& plan) {
    Traffic traffic(plan);
    traffic.run([&](uint32_t step) {
      if (step == plan.steps / 2) {
        traffic.send_long(kLongestBytes - 1 + plan.seed % 3);
      }
    });
  }

 private:
  const TempDir dir_;
};

TEST_F(TagTraffic, TwoCards) {
  each_seed(3, [](uint64_t seed) { run(plan(seed, 20000, pair(seed))); });
}

TEST_F(TagTraffic, TwoCardsSegmentBySegment) {
  each_seed(1, [](uint64_t seed) { run(plan(seed, 3000, pair(seed, ",exact=1"))); });
}

TEST_F(TagTraffic, TwoCardsOnABusThatDelays) {
  each_seed(2, [](uint64_t seed) { run(plan(seed, 3000, pair(seed, pcie(seed)))); });
}

TEST_F(TagTraffic, FourCardsOnAFabric) {
  each_seed(2, [](uint64_t seed) {
    std::vector<std::string> cards;
    for (int id = 1; id <= 4; ++id) {
      cards.push_back("shm:t" + std::to_string(seed) + ",id=" + std::to_string(id));
    }
    TrafficPlan four = plan(seed, 10000, std::move(cards));
    four.first_id = 0;
    run(four);
  });
}

TEST_F(TagTraffic, TwoCardsWithFaults) {
  each_seed(2, [](uint64_t seed) {
    TrafficPlan bad = plan(seed, 3000, pair(seed, faults(seed, "0.0003")));
    bad.may_fail = true;
    run(bad);
  });
}

TEST_F(TagTraffic, TwoCardsWithFaultsOnABusThatDelays) {
  each_seed(1, [](uint64_t seed) {
    TrafficPlan bad = plan(seed, 2000, pair(seed, pcie(seed) + faults(seed, "0.0002")));
    bad.may_fail = true;
    run(bad);
  });
}

}  // namespace
}  // namespace rio::test
