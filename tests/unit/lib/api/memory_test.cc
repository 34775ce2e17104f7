// Memory does not grow with the number of messages: bytes in use are counted after some rounds of
// messages of all kinds, and again after many more.
//
// RIO_MSG_ROUNDS: number of further rounds. RIO_MSG_HOUR: number of messages of the second test.
#include <malloc.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/env_number.hpp"
#include "tests/support/sanitizer.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kFirstRounds = 200;

// The sanitizers' allocators keep freed memory.
constexpr bool kCounts = !kHasAddressSanitizer && !kHasThreadSanitizer;

[[nodiscard]] uint64_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

[[nodiscard]] uint64_t resident_bytes() {
  uint64_t pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  EXPECT_NE(file, nullptr);
  EXPECT_EQ(std::fscanf(file, "%*u %lu", &pages), 1);
  std::fclose(file);
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Everything that could grow.
struct Footprint {
  uint64_t heap_bytes;
  uint64_t resident_bytes;
  uint64_t pss_bytes;
  uint64_t fds;
};

[[nodiscard]] uint64_t pss_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word && word != "Pss:") {
  }
  uint64_t kib = 0;
  file >> kib;
  EXPECT_NE(kib, 0u);
  return kib * 1024;
}

[[nodiscard]] Footprint footprint() {
  const std::filesystem::directory_iterator fds("/proc/self/fd");
  return {bytes_in_use(), resident_bytes(), pss_bytes(),
          static_cast<uint64_t>(std::distance(begin(fds), end(fds)))};
}

class Memory : public testing::Test {
 protected:
  template <class Done>
  void until(Done&& done) {
    ASSERT_TRUE(wait_until([&] {
      if (done()) {
        return true;
      }
      EXPECT_EQ(from_.progress(), 0);
      EXPECT_EQ(to_.progress(), 0);
      return false;
    })) << "the message did not arrive";
  }
  void message(size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(out_)).first(size_bytes);
    until([&] { return own_.send(there_.self(), bytes) == 0; });
    api::Message got;
    until([&] { return there_.receive(&got) == 1; });
    EXPECT_EQ(got.bytes().size(), size_bytes);
  }
  /// @param expected whether the receive is posted first. @param claims whether a matched probe
  /// takes it.
  void tagged(size_t size_bytes, size_t capacity, bool sync, bool expected, bool claims) {
    const auto bytes = std::as_bytes(std::span(out_)).first(size_bytes);
    const auto buffer = std::as_writable_bytes(std::span(in_)).first(capacity);
    const rio_tag_pattern any = {7, 0, RIO_TAG_ANY, 0};
    rio_tag_request* receive = nullptr;
    rio_tag_request* send = nullptr;
    rio_tag_done done{};
    int received = expected ? to_.receive(any, buffer, nullptr, &receive, &done) : -1;
    const int sent = sync ? from_.send_sync(to_.self(), 7, bytes, nullptr, &send, nullptr)
                          : from_.send(to_.self(), 7, bytes, nullptr, &send, nullptr);
    ASSERT_GE(sent, 0);
    if (!expected) {
      rio_tag_info info{};
      rio_tag_message* claimed = nullptr;
      until([&] { return claims ? to_.claim(any, &info, &claimed) : to_.probe(any, &info); });
      EXPECT_EQ(info.size_bytes, size_bytes);
      received = claims ? to_.receive_claimed(claimed, buffer, nullptr, &receive, &done)
                        : to_.receive(any, buffer, nullptr, &receive, &done);
    }
    ASSERT_GE(received, 0);
    if (received == 0) {
      until([&] { return to_.test(receive, &done); });
    }
    EXPECT_EQ(done.status, size_bytes > capacity ? -EMSGSIZE : 0);
    EXPECT_EQ(done.size_bytes, size_bytes);
    if (sent == 0) {
      until([&] { return from_.test(send, &done); });
    }
  }
  /// Sends `count` small messages before it receives any.
  void burst(uint32_t count) {
    const auto bytes = std::as_bytes(std::span(out_)).first(64);
    const auto buffer = std::as_writable_bytes(std::span(in_)).first(64);
    rio_tag_done done{};
    uint32_t left = 0;  // under way
    for (uint32_t i = 0; i < count; ++i) {
      rio_tag_request* request = nullptr;
      const int rc = to_.receive({7, 0, from_.self(), 0}, buffer, nullptr, &request, &done);
      ASSERT_GE(rc, 0);
      left += rc == 0 ? 1 : 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
      rio_tag_request* request = nullptr;
      const int rc = from_.send(to_.self(), 7, bytes, nullptr, &request, &done);
      ASSERT_GE(rc, 0);
      left += rc == 0 ? 1 : 0;
    }
    until([&] {
      for (api::Tag* each : {&from_, &to_}) {
        while (each->next_done(&done)) {
          EXPECT_EQ(done.status, 0);
          --left;
        }
      }
      return left == 0;
    });
  }
  void cancelled() {
    rio_tag_request* receive = nullptr;
    rio_tag_done done{};
    ASSERT_EQ(to_.receive({9, 0, RIO_TAG_ANY, 0}, std::as_writable_bytes(std::span(in_)), nullptr,
                          &receive, &done),
              0);
    EXPECT_EQ(to_.cancel(receive), 0);
    EXPECT_TRUE(to_.test(receive, &done));
  }
  void one_round() {
    for (const size_t size : {0, 1, 64, 500, 4080}) {
      message(size);
    }
    for (const size_t size : {0, 8, 64, 4072, 4073, 16384, 16385, 100000}) {
      for (const bool sync : {false, true}) {
        tagged(size, size, sync, true, false);
        tagged(size, size / 2, sync, false, false);
        tagged(size, size, sync, false, true);
      }
    }
    cancelled();
  }

  api::Port a_ = open_port("emu:memory", 1, false, false);
  api::Port b_ = open_port("emu:memory", 2, false, false);
  api::Context own_ = open_context(a_, 0);
  api::Context there_ = open_context(b_, 0);
  api::Tag from_ = open_tag(a_, 1);
  api::Tag to_ = open_tag(b_, 1);
  std::vector<uint8_t> out_ = std::vector<uint8_t>(100000, 'x');
  std::vector<uint8_t> in_ = std::vector<uint8_t>(100000);
};

TEST_F(Memory, DoesNotGrow) {
  constexpr uint64_t kSlackBytes = 64 * 1024;  // a table that doubles late
  constexpr uint64_t kResidentSlack = 4 << 20;
  const uint64_t rounds = env_number("RIO_MSG_ROUNDS", 1000);
  for (uint32_t i = 0; i < kFirstRounds && !HasFatalFailure(); ++i) {
    one_round();
  }
  const uint64_t before = bytes_in_use();
  const uint64_t resident_before = resident_bytes();
  for (uint64_t i = 0; i < rounds && !HasFatalFailure(); ++i) {
    one_round();
  }
  if (kCounts) {
    EXPECT_LE(bytes_in_use(), before + kSlackBytes) << "rounds: " << rounds;
    EXPECT_LE(resident_bytes(), resident_before + kResidentSlack) << "rounds: " << rounds;
  }
}

// An hour of a job that sends ten thousand messages a second: 36 million. All are small, except
// for a round of all kinds now and then. The use after an eighth of them is the limit for the rest.
TEST_F(Memory, DoesNotGrowInAnHour) {
  constexpr uint64_t kHeapSlack = 64 * 1024;
  constexpr uint64_t kPagesSlack = 4 << 20;
  constexpr uint32_t kBurst = 32;
  constexpr uint32_t kSamples = 16;
  constexpr uint32_t kBurstsPerRound = 500;
  const uint64_t messages = env_number("RIO_MSG_HOUR", 400'000);
  const uint64_t bursts = messages / kBurst / kSamples;
  Footprint first{};
  for (uint32_t sample = 0; sample < kSamples && !HasFatalFailure(); ++sample) {
    for (uint64_t i = 0; i < bursts && !HasFatalFailure(); ++i) {
      burst(kBurst);
      if (i % kBurstsPerRound == 0) {
        one_round();
      }
    }
    const Footprint now = footprint();
    std::printf("%5.1f %%  heap %llu, resident %llu, pss %llu bytes, %llu descriptors\n",
                100.0 * (sample + 1) / kSamples, static_cast<unsigned long long>(now.heap_bytes),
                static_cast<unsigned long long>(now.resident_bytes),
                static_cast<unsigned long long>(now.pss_bytes),
                static_cast<unsigned long long>(now.fds));
    if (sample < 2) {
      first = now;
      continue;
    }
    EXPECT_LE(now.fds, first.fds);
    if (kCounts) {
      EXPECT_LE(now.heap_bytes, first.heap_bytes + kHeapSlack);
      EXPECT_LE(now.resident_bytes, first.resident_bytes + kPagesSlack);
      EXPECT_LE(now.pss_bytes, first.pss_bytes + kPagesSlack);
    }
  }
}

}  // namespace
}  // namespace rio::test
