// Members of a fabric are killed at any instant and come back under the same destID. Those that
// live must not be disturbed: what they send each other arrives, once, as it was sent.
//
// RIO_SHM_KILLS: how many, RIO_SEED: where the random instants begin.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/env_number.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

using pmd::Status;

constexpr uint32_t kSurvivors = 2;  // destIDs 1 and 2
constexpr uint32_t kMembers = 5;

[[nodiscard]] uint32_t from_environment(const char* name, uint32_t otherwise) {
  return static_cast<uint32_t>(env_number(name, otherwise));
}

/// Sends to all others by turns, forever; ends with a number that says what went wrong.
class Talker {
 public:
  Talker(uint32_t id, int stop_fd) : id_(id), stop_fd_(stop_fd), member_(name_of(id)) {}

  int run() {
    if (!member_.open()) {
      return 10;
    }
    for (uint32_t turn = 0;; ++turn) {
      if (turn % 1024 == 0 && stopped()) {
        std::fprintf(stderr, "%u: %u from the other survivor\n", id_, in_order_);
        return in_order_ > 10 || id_ > kSurvivors ? 0 : 11;
      }
      std::string text;
      if (member_.poll(&text) && !take(text)) {
        std::fprintf(stderr, "%u got \"%s\"\n", id_, text.c_str());
        return 12;
      }
      pmd::TxDone done{};
      if (!flying_) {
        send_next();
      } else if (member_.endpoint().tx().reap(&done, 1) == 1) {
        flying_ = false;
        if (!allowed(done.status)) {
          std::fprintf(stderr, "%u to %u: %s\n", id_, to_, pmd::name(done.status));
          return 13;
        }
      }
    }
  }

  [[nodiscard]] static std::string name_of(uint32_t id) {
    return "shm:kill,id=" + std::to_string(id);
  }

 private:
  [[nodiscard]] bool stopped() const {
    pollfd one{stop_fd_, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
  }
  void send_next() {
    other_ = other_ % kMembers + 1;
    other_ = other_ == id_ ? other_ % kMembers + 1 : other_;
    // Every other one between survivors.
    to_ = id_ > kSurvivors || to_ <= kSurvivors ? other_ : kSurvivors + 1 - id_;
    const uint32_t number = ++sent_[to_];
    // Some are long enough to be pulled out of this process.
    member_.send(to_, std::to_string(to_) + ":" + std::to_string(number),
                 number % 3 == 0 ? 4000 : 0);
    flying_ = true;
  }
  /// "SOURCE:TO:NUMBER". Between survivors each number comes once, in order, since there is one at
  /// a time; others may begin again, and their last one may be lost.
  [[nodiscard]] bool take(const std::string& text) {
    unsigned source = 0;
    unsigned to = 0;
    unsigned number = 0;
    char more = 0;
    if (std::sscanf(text.c_str(), "%u:%u:%u%c", &source, &to, &number, &more) != 3 || to != id_ ||
        source < 1 || source > kMembers) {
      return false;
    }
    const bool next = number == got_[source] + 1;
    got_[source] = number;
    if (source <= kSurvivors && id_ <= kSurvivors) {
      ++in_order_;
      return next;
    }
    return true;
  }
  [[nodiscard]] bool allowed(Status status) {
    if (to_ <= kSurvivors && id_ <= kSurvivors) {
      met_ = met_ || status == Status::kOk;
      sent_[to_] -= status == Status::kOk ? 0 : 1;  // it was not delivered
      return status == Status::kOk || !met_ || stopped();
    }
    return status == Status::kOk || status == Status::kLinkDown ||
           status == Status::kResponseTimeout || status == Status::kErrorResponse;
  }

  uint32_t id_;
  int stop_fd_;
  Member member_;
  uint32_t to_ = 0;
  uint32_t other_ = 0;
  bool flying_ = false;
  bool met_ = false;  // the other survivor
  uint32_t in_order_ = 0;
  uint32_t sent_[kMembers + 1] = {};
  uint32_t got_[kMembers + 1] = {};
};

TEST(ShmKill, SurvivorsAreNotDisturbed) {
  const TempDir dir;
  setenv("RIO_RUNTIME_DIR", dir.at("").c_str(), 1);
  const uint32_t kills = from_environment("RIO_SHM_KILLS", 60);
  const uint32_t seed = rio::test::first_seed();
  std::mt19937 random(seed);
  Pipe stop;
  const auto talker = [&](uint32_t id) {
    return Child([&stop, id] {
      stop.close_writer();
      return Talker(id, stop.reader()).run();
    });
  };
  std::vector<Child> all;
  for (uint32_t id = 1; id <= kMembers; ++id) {
    all.push_back(talker(id));
  }
  for (uint32_t k = 0; k < kills; ++k) {
    const uint32_t victim = kSurvivors + static_cast<uint32_t>(random() % (kMembers - kSurvivors));
    // Short ones hit those that are just joining or connecting.
    std::this_thread::sleep_for(
        std::chrono::microseconds(random() % (k % 4 == 0 ? 40'000 : 4'000)));
    all[victim].signal(SIGKILL);
    ASSERT_EQ(all[victim].exit_code(), -1) << "ended before it was killed";
    all[victim] = talker(victim + 1);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stop.close_writer();
  for (uint32_t id = 1; id <= kMembers; ++id) {
    EXPECT_EQ(all[id - 1].exit_code(), 0) << id;
  }
  unsetenv("RIO_RUNTIME_DIR");
  EXPECT_FALSE(std::filesystem::exists(dir.at("riopmd-" + std::to_string(geteuid()))));
}

}  // namespace
}  // namespace rio::test
