// Random traffic of all sizes from 0 to 16 MiB, at all alignments, over cards of every kind and
// with every fault, against a simple reference: a queue for each sender, receiver and match bits.
//
// RIO_TAG_SEEDS: number of seeds of each kind; RIO_SEED: the first.
#include <cstdio>

#include "tests/support/seed.hpp"
#include "tests/support/temp_dir.hpp"
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

[[nodiscard]] std::vector<std::string> on_a_fabric(int count, uint64_t seed) {
  std::vector<std::string> cards;
  for (int id = 1; id <= count; ++id) {
    cards.push_back("shm:t" + std::to_string(seed) + ",id=" + std::to_string(id));
  }
  return cards;
}

class TagTraffic : public testing::Test {
 protected:
  TagTraffic() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~TagTraffic() override { unsetenv("RIO_RUNTIME_DIR"); }

  /// @param otherwise number of seeds if RIO_TAG_SEEDS is not set.
  template <class Each>
  static void each_seed(uint64_t otherwise, Each&& each) {
    const uint64_t first = rio::test::first_seed();
    const uint64_t count = env_number("RIO_TAG_SEEDS", otherwise);
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
  /// Runs traffic with a message of 16 MiB, or a byte more or less, in the middle of it.
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
    TrafficPlan four = plan(seed, 10000, on_a_fabric(4, seed));
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

// Each kind of fault alone; each must have occurred.
TEST_F(TagTraffic, EachFaultAlone) {
  constexpr uint32_t kKinds = 8;
  constexpr double kRates[kKinds] = {0.005, 0.002, 0.002, 0.02, 0.003, 0.003, 0.003, 0.003};
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    SCOPED_TRACE(kind);
    uint64_t drawn = 0;
    const auto once = [&](uint64_t seed) {
      TrafficPlan bad = plan(seed, 3000, pair(seed, ",exact=1"));
      bad.may_fail = true;
      bad.budget_bytes = 2u << 20;
      Traffic traffic(bad);
      for (uint32_t node = 0; node < traffic.count(); ++node) {
        traffic.card(node).set_faults({seed + node, kRates[kind], 1u << kind});
      }
      traffic.run();
      for (uint32_t node = 0; node < traffic.count(); ++node) {
        drawn += traffic.card(node).statistics().faults[kind];
      }
    };
    each_seed(1, once);
    for (uint32_t more = 0; drawn == 0 && more < 20; ++more) {
      once(env_number("RIO_TAG_SEED", rio::test::first_seed()) + 1 +
           more);  // it is random how often a fault occurs
    }
    EXPECT_NE(drawn, 0u);
  }
}

/// Hitches: now and then the link of a card goes down for a while, or the card does not read a
/// ring.
class Hitches {
 public:
  explicit Hitches(Traffic& traffic) : traffic_(traffic), left_(traffic.count()) {}

  /// @param last end all hitches for good.
  void step(bool last) {
    for (uint32_t node = 0; node < traffic_.count(); ++node) {
      uint32_t& left = left_[node];
      if (left == 0 && !last && traffic_.below(150) == 0) {
        left = 1 + static_cast<uint32_t>(traffic_.below(40));
        kind_ = static_cast<uint32_t>(traffic_.below(3));
        set(node, true);
        ++count_;
      } else if (left != 0 && (--left == 0 || last)) {
        left = 0;
        set(node, false);
      }
    }
  }
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  void set(uint32_t node, bool bad) {
    model::Card& card = traffic_.card(node);
    card.set_link(!bad || kind_ != 0);
    card.hold_ring(0, static_cast<uint32_t>(regs::Ring::kTx), bad && kind_ == 1);
    card.hold_ring(0, static_cast<uint32_t>(regs::Ring::kShared), bad && kind_ == 2);
  }

  Traffic& traffic_;
  std::vector<uint32_t> left_;
  uint32_t kind_ = 0;
  uint32_t count_ = 0;
};

TEST_F(TagTraffic, LinksThatGoDownAndRingsThatAreStuck) {
  each_seed(2, [](uint64_t seed) {
    TrafficPlan bad = plan(seed, 5000, pair(seed, seed % 2 == 0 ? "" : pcie(seed)));
    bad.may_fail = true;
    Traffic traffic(bad);
    Hitches hitches(traffic);
    traffic.run([&](uint32_t step) { hitches.step(step == bad.steps - 1); });
    EXPECT_NE(hitches.count(), 0u);
  });
}

// Users are told that their card is gone, open it again and go on; so do their peers. Messages
// under way may be lost, but none arrives twice, out of order or changed.
TEST_F(TagTraffic, CardsThatVanishOrAreReset) {
  each_seed(2, [](uint64_t seed) {
    TrafficPlan bad = plan(seed, 4000, on_a_fabric(3, seed));
    bad.first_id = 0;
    bad.budget_bytes = 2u << 20;
    bad.deliver_ms = 2000;
    Traffic traffic(bad);
    traffic.run([&](uint32_t step) {
      if (step % 1000 == 500) {
        const auto node = static_cast<uint32_t>(traffic.below(traffic.count()));
        traffic.disturbed(node);
        if (step % 2000 == 500) {
          traffic.card(node).vanish();
        } else {
          traffic.card(node).lose_state();
        }
        ASSERT_TRUE(traffic.until_told(node)) << "seed " << seed;
        traffic.reopen(node);
      }
    });
    ASSERT_TRUE(HasFatalFailure() || traffic.all_well()) << "seed " << seed;
  });
}

}  // namespace
}  // namespace rio::test
