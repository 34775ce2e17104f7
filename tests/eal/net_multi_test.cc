// Two processes at two ports. This process is not an EAL process: it starts them from the same
// program with --role, and talks to them over pipes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <sstream>

#include "tests/eal/child_process.hpp"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_worker.hpp"

namespace rio::test {
namespace {

class NetMulti : public testing::Test {
 protected:
  void begin(const char* stepping) {
    if (const std::string why = why_not(EalMode::kShared, 128); !why.empty()) {
      GTEST_SKIP() << why;
    }
    prefix_ = own_prefix("net-multi");
    primary_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{"--role=primary", prefix_, stepping});
    ASSERT_EQ(primary_->line(), "ready");
    secondary_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{"--role=secondary", prefix_, stepping});
    ASSERT_EQ(secondary_->line(), "ready");
  }
  void TearDown() override {
    if (secondary_ != nullptr) {
      EXPECT_EQ(secondary_->ask("end"), "ended");
      EXPECT_EQ(secondary_->wait(), 0);
    }
    if (primary_ != nullptr) {
      EXPECT_EQ(primary_->ask("end"), "ended");
      EXPECT_EQ(primary_->wait(), 0);
    }
  }
  /// Whether `n` more frames arrive at a process, all of them whole and in order.
  static bool moves(ChildProcess& process, uint64_t n) {
    const uint64_t before = count(process);
    for (int waited_ms = 0; waited_ms < kPatienceMs; waited_ms += 10) {
      if (count(process) >= before + n) {
        return true;
      }
      usleep(10'000);
    }
    return false;
  }
  static uint64_t count(ChildProcess& process) {
    std::istringstream words(process.ask("count"));
    std::string word;
    uint64_t frames = 0;
    uint64_t errors = 1;
    words >> word >> frames >> errors;
    EXPECT_EQ(errors, 0u);
    return frames;
  }

  std::string prefix_;
  std::unique_ptr<ChildProcess> primary_;
  std::unique_ptr<ChildProcess> secondary_;
};

TEST_F(NetMulti, BothProcessesPollUntilOneIsKilled) {
  begin("stepping=thread,response_timeout_us=5000000");
  ASSERT_TRUE(primary_ == nullptr || secondary_ != nullptr);
  if (primary_ == nullptr) {
    return;
  }
  EXPECT_TRUE(moves(*primary_, 100));
  EXPECT_TRUE(moves(*secondary_, 100));
  EXPECT_EQ(secondary_->ask("stats"), "stats 0") << "they are the primary's counts";
  EXPECT_EQ(secondary_->ask("control"), "control 0") << "functions of the primary are refused";
  EXPECT_TRUE(moves(*primary_, 100));
  EXPECT_TRUE(moves(*secondary_, 100));

  EXPECT_EQ(secondary_->ask("hold"), "held 0") << "mbufs that it will not free";
  secondary_->kill9();
  secondary_ = nullptr;
  EXPECT_TRUE(moves(*primary_, 100)) << "it continues on its own queues";
  std::istringstream words(primary_->ask("stop"));
  std::string word;
  uint32_t missing = UINT32_MAX;
  words >> word >> missing;
  EXPECT_EQ(word, "stopped");
  EXPECT_EQ(missing, kHeld) << "mbufs on its queues come back, those in its hands are lost";
}

TEST_F(NetMulti, WithInlineSteppingTheSecondaryOnlyReads) {
  begin("stepping=inline");
  if (primary_ == nullptr) {
    return;
  }
  EXPECT_TRUE(moves(*primary_, 100));
  EXPECT_EQ(secondary_->ask("stats"), "stats 0");
  const uint64_t before = count(*secondary_);
  EXPECT_TRUE(moves(*primary_, 100));
  EXPECT_EQ(count(*secondary_), before) << "it must not poll, and its bursts do nothing";
  EXPECT_EQ(before, 0u);
}

int run_role(const std::string& role, const std::string& prefix, const std::string& args) {
  std::vector<std::string> options = {"--no-telemetry", "-d", "librte_net_rio.so",
                                      "--log-level=pmd.common.rio:info"};
  const bool primary = role == "primary";
  if (primary) {
    options.insert(options.end(), {"-m", "96"});
    for (const char* const name : {"net_rio0", "net_rio1"}) {
      options.push_back(std::string("--vdev=") + name + ",wire=multi,qps=2," + args);
    }
  } else {
    options.insert(options.end(), {"--proc-type=secondary", "--vdev=net_rio0", "--vdev=net_rio1"});
  }
  if (start_eal(EalMode::kShared, prefix, options, primary ? 0 : 1) < 0) {
    return 1;
  }
  const int rc = run_net_worker(primary);
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
