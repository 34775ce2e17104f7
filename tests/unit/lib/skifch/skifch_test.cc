#include "lib/skifch/skifch.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

struct Close {
  void operator()(SkifCh* channel) const { SkifCh_Close(channel); }
};
using Channel = std::unique_ptr<SkifCh, Close>;

constexpr uint32_t kTurns = 100000;  // no wait is longer

/// Two cards of this process on one wire.
class SkifChPair : public ::testing::Test {
 protected:
  static Channel open(const std::string& card, uint32_t number, uint32_t dest_id) {
    SkifCh_Options options = {};
    options.dest_id = dest_id;
    options.share = 16;
    Channel channel(SkifCh_Open(card.c_str(), number, &options));
    EXPECT_NE(channel, nullptr) << std::strerror(errno);
    return channel;
  }

  /// Send, letting both sides work while there is no room.
  static ssize_t send(SkifCh* from, SkifCh* other, netaddr_t to, const std::vector<iovec>& pieces) {
    ssize_t rc = -1;
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      rc = SkifCh_Send(from, to, pieces.data(), static_cast<int>(pieces.size()));
      if (rc >= 0 || errno != EAGAIN) {
        break;
      }
      work(other);
    }
    return rc;
  }
  static ssize_t send(SkifCh* from, SkifCh* other, netaddr_t to, const std::string& text) {
    return send(from, other, to, {{const_cast<char*>(text.data()), text.size()}});
  }
  static void work(SkifCh* channel) { EXPECT_EQ(SkifCh_Progress(channel), 0); }

  /// The next message, done with. "none": none came.
  static std::string receive(SkifCh* to, SkifCh* other) {
    iovec cont[SKIFCH_CONT_SIZE];
    int count = 0;
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const ssize_t bytes = SkifCh_Recv(to, cont, &count);
      if (bytes >= 0) {
        std::string text;
        for (int i = 0; i < count; ++i) {
          text.append(static_cast<const char*>(cont[i].iov_base), cont[i].iov_len);
        }
        EXPECT_EQ(text.size(), static_cast<size_t>(bytes));
        EXPECT_EQ(SkifCh_RecvComp(to), 0);
        return text;
      }
      EXPECT_EQ(errno, EAGAIN);
      work(other);
    }
    return "none";
  }

  const std::string wire_ =
      std::string("emu:") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Channel a_ = open(wire_, 1, 5);
  Channel b_ = open(wire_, 2, 6);
  const netaddr_t to_a_ = SkifCh_Addr(5, 1);
  const netaddr_t to_b_ = SkifCh_Addr(6, 2);
};

TEST_F(SkifChPair, AMessageOfEachSizeArrivesAsItWas) {
  for (size_t bytes = 0; bytes <= SKIFCH_MESSAGE_MAX; bytes += bytes < 300 ? 1 : 97) {
    std::string text(bytes, '\0');
    std::iota(text.begin(), text.end(), static_cast<char>(bytes));
    ASSERT_EQ(send(a_.get(), b_.get(), to_b_, text), static_cast<ssize_t>(bytes))
        << std::strerror(errno);
    ASSERT_EQ(receive(b_.get(), a_.get()), text) << bytes;
  }
}

}  // namespace
