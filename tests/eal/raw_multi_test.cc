// Several processes on one emulated card. This process is not an EAL process: it starts them from
// the same program with --role, and talks to them over pipes.

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <sstream>

#include "tests/eal/child_process.hpp"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/raw_worker.hpp"

namespace rio::test {
namespace {

/// A worker process.
class Worker : public ChildProcess {
 public:
  Worker(const std::string& prefix, bool primary, unsigned qp)
      : ChildProcess({std::string("--role=") + (primary ? "primary" : "secondary"), prefix,
                      std::to_string(qp)}) {}

  /// Messages so far; expects no errors.
  uint64_t count() {
    std::istringstream words(ask("count"));
    std::string word;
    uint64_t messages = 0;
    uint64_t errors = 1;
    words >> word >> messages >> errors;
    EXPECT_EQ(errors, 0u);
    return messages;
  }
  /// Whether `n` more messages are exchanged.
  bool moves(uint64_t n) {
    const uint64_t before = count();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (std::chrono::steady_clock::now() < end) {
      if (count() >= before + n) {
        return true;
      }
      usleep(10'000);
    }
    return false;
  }
  int stop() {
    EXPECT_EQ(ask("stop"), "stopped 0");
    return wait();
  }
};

class RawMulti : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(EalMode::kShared, 128); !why.empty()) {
      GTEST_SKIP() << why;
    }
    prefix_ = own_prefix("multi");
    primary_ = std::make_unique<Worker>(prefix_, true, 0);
    ASSERT_EQ(primary_->line(), "claimed");
  }
  void TearDown() override {
    if (primary_ != nullptr) {
      EXPECT_EQ(primary_->stop(), 0);
    }
  }
  std::unique_ptr<Worker> secondary(unsigned qp) const {
    return std::make_unique<Worker>(prefix_, false, qp);
  }

  std::string prefix_;
  std::unique_ptr<Worker> primary_;
};

TEST_F(RawMulti, FourProcessesOutliveAKilledOne) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned qp = 1; qp <= 4; ++qp) {
    workers.push_back(secondary(qp));
  }
  for (const auto& worker : workers) {
    ASSERT_EQ(worker->line(), "claimed");
  }
  for (const auto& worker : workers) {
    EXPECT_TRUE(worker->moves(20));
  }
  EXPECT_TRUE(primary_->moves(20));

  workers[1]->kill9();
  for (const unsigned alive : {0u, 2u, 3u}) {
    EXPECT_TRUE(workers[alive]->moves(20));
  }
  EXPECT_TRUE(primary_->moves(20));

  workers[1] = secondary(2);
  EXPECT_EQ(workers[1]->line(), "claimed") << "the queue pair of a dead process";
  for (const auto& worker : workers) {
    EXPECT_TRUE(worker->moves(20));
  }
  EXPECT_EQ(primary_->ask("reset"), "reset -16") << "other processes have queue pairs";
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->stop(), 0);
  }
  EXPECT_EQ(primary_->ask("reset"), "reset 0");
}

TEST_F(RawMulti, OneOfManyGetsAQueuePair) {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Worker>> racers;
    racers.reserve(3);
    for (int i = 0; i < 3; ++i) {
      racers.push_back(secondary(5));
    }
    int claimed = 0;
    std::unique_ptr<Worker> winner;
    for (auto& racer : racers) {
      const std::string answer = racer->line();
      if (answer == "claimed") {
        ++claimed;
        winner = std::move(racer);
      } else {
        EXPECT_EQ(answer, "busy");
        EXPECT_EQ(racer->wait(), 0);
      }
    }
    ASSERT_EQ(claimed, 1);
    EXPECT_TRUE(winner->moves(20));
    winner->kill9();  // the next round competes for a dead process's queue pair
  }
}

TEST_F(RawMulti, PlugsCardsIntoAllProcesses) {
  auto worker = secondary(1);
  ASSERT_EQ(worker->line(), "claimed");
  EXPECT_EQ(worker->ask("devices"), "devices 1");
  EXPECT_EQ(primary_->ask("plug raw_rio1"), "plugged 0");
  EXPECT_EQ(worker->ask("devices"), "devices 2");
  EXPECT_EQ(worker->ask("selftest"), "selftest 0") << "in the secondary, on the primary's card";
  EXPECT_EQ(primary_->ask("unplug raw_rio1"), "unplugged 0");
  EXPECT_EQ(worker->ask("devices"), "devices 1");
  EXPECT_TRUE(worker->moves(20));
  EXPECT_EQ(worker->stop(), 0);
}

int run_role(const std::string& role, const std::string& prefix, const char* qp) {
  const bool primary = role == "primary";
  std::vector<std::string> args = {"--no-telemetry", "--log-level=pmd.common.rio:info"};
  if (primary) {
    args.insert(args.end(),
                {"-m", "64", "--vdev=raw_rio0,qps=7,stepping=thread,response_timeout_us=5000000"});
  } else {
    args.emplace_back("--proc-type=secondary");
  }
  if (start_eal(EalMode::kShared, prefix, args) < 0) {
    return 1;
  }
  const int rc = run_worker("raw_rio0", static_cast<uint16_t>(std::stoul(qp)));
  end_eal();
  return rc;
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  if (argc == 4 && std::strncmp(argv[1], "--role=", 7) == 0) {
    return rio::test::run_role(argv[1] + 7, argv[2], argv[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  return RUN_ALL_TESTS();
}
