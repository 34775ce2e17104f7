// Several processes on one emulated card. This process is not one of EAL: it starts them, being
// the same program with --role, and talks to them over pipes.

#include <gtest/gtest.h>
#include <poll.h>
#include <rte_eal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <sstream>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/raw_worker.hpp"

namespace rio::test {
namespace {

constexpr int kPatienceMs = 30'000;  // of a machine with better things to do

/// A worker process.
class Worker {
 public:
  Worker(const std::string& prefix, bool primary, unsigned qp) {
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) {
      return;
    }
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int fd : {to[0], to[1], from[0], from[1]}) {
        close(fd);
      }
      const std::string role = std::string("--role=") + (primary ? "primary" : "secondary");
      const std::string number = std::to_string(qp);
      execl("/proc/self/exe", "raw_multi_test", role.c_str(), prefix.c_str(), number.c_str(),
            nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }
  ~Worker() {
    if (pid_ > 0) {
      kill9();
    }
    close(in_);
    close(out_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Next line, "" after half a minute or at the end.
  std::string line() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    for (;;) {
      if (const size_t at = text_.find('\n'); at != std::string::npos) {
        std::string first = text_.substr(0, at);
        text_.erase(0, at + 1);
        return first;
      }
      pollfd fd{.fd = out_, .events = POLLIN, .revents = 0};
      char bytes[512];
      if (std::chrono::steady_clock::now() > end || poll(&fd, 1, kPatienceMs) <= 0) {
        return "";
      }
      const ssize_t n = read(out_, bytes, sizeof(bytes));
      if (n <= 0) {
        return "";
      }
      text_.append(bytes, static_cast<size_t>(n));
    }
  }
  std::string ask(const std::string& command) {
    const std::string text = command + "\n";
    return write(in_, text.data(), text.size()) < 0 ? "" : line();
  }
  /// Messages so far; errors are expected to be none.
  uint64_t count() {
    std::istringstream words(ask("count"));
    std::string word;
    uint64_t messages = 0;
    uint64_t errors = 1;
    words >> word >> messages >> errors;
    EXPECT_EQ(errors, 0u);
    return messages;
  }
  /// Whether `n` more messages went through.
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
  void kill9() {
    kill(pid_, SIGKILL);
    (void)wait();
  }
  /// @return exit code, or -1.
  int wait() {
    int status = 0;
    const bool ended = waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status);
    pid_ = -1;
    return ended ? WEXITSTATUS(status) : -1;
  }
  int stop() {
    EXPECT_EQ(ask("stop"), "stopped 0");
    return wait();
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string text_;
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

TEST_F(RawMulti, FiveProcessesOneKilled) {
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
  EXPECT_EQ(workers[1]->line(), "claimed") << "queue pair of a dead process";
  for (const auto& worker : workers) {
    EXPECT_TRUE(worker->moves(20));
  }
  EXPECT_EQ(primary_->ask("reset"), "reset -16") << "others have queue pairs";
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
    winner->kill9();  // the next round races for what a dead process has
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
