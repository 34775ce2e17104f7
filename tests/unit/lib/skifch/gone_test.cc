// A receiver is told when the process of its sender has died.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "lib/skifch/skifch.h"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kLongMs = 60000;  // no wait is longer
constexpr uint32_t kNumber = 1;

struct Close {
  void operator()(SkifCh* channel) const { SkifCh_Close(channel); }
};
using Channel = std::unique_ptr<SkifCh, Close>;

/// Whether waits sleep, and whether each channel has a thread of its own.
struct Ways {
  bool sleeps;
  bool threads;
};

class SkifChGone : public testing::TestWithParam<Ways> {
 protected:
  SkifChGone() { setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1); }
  ~SkifChGone() override { unsetenv("RIO_RUNTIME_DIR"); }

  static Channel open(const char* card, uint32_t number) {
    SkifCh_Options options{};
    options.sleeps = GetParam().sleeps ? 1 : 0;
    options.threads = GetParam().threads ? 1 : 0;
    Channel channel(SkifCh_Open(card, number, &options));
    EXPECT_NE(channel, nullptr) << std::strerror(errno);
    return channel;
  }
  static bool send(SkifCh* own, netaddr_t to, std::string text) {
    const iovec piece = {text.data(), text.size()};
    ssize_t rc = -1;
    while (rc < 0) {
      rc = SkifCh_Send(own, to, &piece, 1);
      if (rc < 0 && (errno != EAGAIN || SkifCh_Wait(own, kLongMs) != 1)) {
        return false;
      }
    }
    return true;
  }
  /// @return the text of the next message; "" if there is none.
  static std::string receive(SkifCh* own) {
    iovec cont[SKIFCH_CONT_SIZE];
    int count = 0;
    const ssize_t bytes = SkifCh_Recv(own, cont, &count);
    if (bytes < 0) {
      EXPECT_EQ(errno, EAGAIN) << std::strerror(errno);
      return "";
    }
    std::string text(static_cast<const char*>(cont[0].iov_base), static_cast<size_t>(bytes));
    EXPECT_EQ(SkifCh_RecvComp(own), 0);
    return text;
  }
  /// @return whether SkifCh_NextGone() reports this destID with this error.
  static bool gone(SkifCh* own, uint32_t dest_id, int error) {
    uint32_t who = 0;
    int why = 0;
    return SkifCh_NextGone(own, &who, &why) == 1 && who == dest_id && why == error;
  }
  static bool none_gone(SkifCh* own) {
    uint32_t who = 0;
    int why = 0;
    return SkifCh_NextGone(own, &who, &why) == 0;
  }

  TempDir folder_;
};

TEST_P(SkifChGone, AChannelThatOnlyReceivesIsTold) {
  Pipe go;
  Child sender(
      [] {
        const Channel channel = open("shm:gone,id=2", kNumber);
        if (!send(channel.get(), SkifCh_Addr(1, kNumber), "last words")) {
          return 1;
        }
        while (SkifCh_Progress(channel.get()) == 0) {
        }
        return 2;
      },
      &go);
  const Channel own = open("shm:gone,id=1", kNumber);
  const Channel second = open("shm:gone,id=1", kNumber + 1);
  ASSERT_TRUE(own != nullptr && second != nullptr);
  go.tell();
  std::string heard;
  while (heard.empty() && SkifCh_Wait(own.get(), kLongMs) == 1) {
    heard = receive(own.get());
  }
  EXPECT_EQ(heard, "last words");
  EXPECT_TRUE(none_gone(own.get()));
  sender.signal(SIGKILL);
  EXPECT_EQ(sender.exit_code(), -1);
  ASSERT_EQ(SkifCh_Wait(own.get(), kLongMs), 1) << "the news does not end the wait";
  EXPECT_EQ(receive(own.get()), "");
  // Each channel is told once.
  EXPECT_TRUE(gone(own.get(), 2, ECONNRESET));
  EXPECT_TRUE(none_gone(own.get()));
  EXPECT_EQ(SkifCh_Wait(own.get(), 0), 0);
  EXPECT_TRUE(gone(second.get(), 2, ECONNRESET));
  const Channel late = open("shm:gone,id=1", kNumber + 2);
  EXPECT_TRUE(none_gone(late.get())) << "it was not open then";
}

INSTANTIATE_TEST_SUITE_P(Ways, SkifChGone,
                         testing::Values(Ways{false, false}, Ways{true, false}, Ways{true, true}),
                         [](const auto& one) {
                           return std::string(one.param.sleeps ? "Sleeps" : "Polls") +
                                  (one.param.threads ? "Threads" : "");
                         });

}  // namespace
}  // namespace rio::test
