// Channels of one card on several threads, and waits that sleep. TSan looks for races here.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lib/api/riomsg.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kChannels = 3;  // of each card
constexpr uint32_t kMessages = 1000;
constexpr uint32_t kLongMs = 60000;

class SkifChThreads : public testing::Test {
 protected:
  SkifChThreads() { setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1); }

  [[nodiscard]] static api::Channel open(const char* card, uint32_t number) {
    SkifCh_Options options{};
    options.share = 16;
    options.threads = 1;
    options.sleeps = 1;
    api::Channel channel(SkifCh_Open(card, number, &options));
    EXPECT_NE(channel, nullptr) << std::strerror(errno);
    return channel;
  }

  TempDir folder_;
};

/// Short texts, which are sent at once, and long ones, which are gathered.
std::string text(uint32_t number) {
  return std::to_string(number) + std::string(number % 5 * 100, '.');
}

void send_all(SkifCh* own, netaddr_t to) {
  for (uint32_t i = 0; i < kMessages; ++i) {
    std::string out = text(i);
    const iovec pieces[] = {{out.data(), 1}, {out.data() + 1, out.size() - 1}};
    const iovec whole = {out.data(), out.size()};
    ssize_t sent = -1;
    while (sent < 0) {
      sent = i % 2 == 0 ? SkifCh_Send(own, to, &whole, 1) : SkifCh_Send(own, to, pieces, 2);
      if (sent < 0) {
        ASSERT_EQ(errno, EAGAIN) << std::strerror(errno);
        ASSERT_EQ(SkifCh_Wait(own, kLongMs), 1);
      }
    }
    ASSERT_EQ(sent, static_cast<ssize_t>(out.size()));
  }
}

void receive_all(SkifCh* own, netaddr_t from) {
  for (uint32_t i = 0; i < kMessages; ++i) {
    iovec cont[SKIFCH_CONT_SIZE];
    int count = 0;
    ssize_t bytes = -1;
    while ((bytes = SkifCh_Recv(own, cont, &count)) < 0) {
      ASSERT_EQ(errno, EAGAIN) << std::strerror(errno);
      ASSERT_EQ(SkifCh_Wait(own, kLongMs), 1);
    }
    ASSERT_EQ(std::string(static_cast<const char*>(cont[0].iov_base), bytes), text(i));
    ASSERT_EQ(SkifCh_Source(own), from);
    ASSERT_EQ(SkifCh_RecvComp(own), 0);
  }
  ASSERT_EQ(SkifCh_RecvComp(own), -1);
}

TEST_F(SkifChThreads, EachChannelOnItsOwn) {
  std::vector<api::Channel> left;
  std::vector<api::Channel> right;
  for (uint32_t i = 0; i < kChannels; ++i) {
    left.push_back(open("shm:skifch,id=1", i));
    right.push_back(open("shm:skifch,id=2", i));
  }
  std::atomic<uint32_t> received{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kChannels; ++i) {
    threads.emplace_back([&, i] {
      send_all(left[i].get(), SkifCh_Self(right[i].get()));
      // Messages move only during calls, and the last ones sent need some calls, too.
      while (received != kChannels && !HasFailure()) {
        SkifCh_Wait(left[i].get(), 1);
      }
    });
    threads.emplace_back([&, i] {
      receive_all(right[i].get(), SkifCh_Self(left[i].get()));
      ++received;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// The first thread opens the card, and the last channel to close also closes the card.
TEST_F(SkifChThreads, OpenedAndClosedByThreads) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kChannels; ++i) {
    threads.emplace_back([i] {
      for (uint32_t round = 0; round < 5; ++round) {
        const api::Channel channel = open("shm:skifch,id=1", i);
        ASSERT_NE(channel, nullptr);
        ASSERT_EQ(SkifCh_Self(channel.get()), SkifCh_Addr(1, i));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace rio::test
