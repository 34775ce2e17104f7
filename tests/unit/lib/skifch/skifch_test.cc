#include "lib/skifch/skifch.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/unit/pmd/api/log_lines.hpp"

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

  /// Sends, and lets both sides work while there is no room.
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

  /// Receives the next message and completes it. "none": no message came.
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

TEST_F(SkifChPair, SendGathersAndSendsTheFirstPartOfAMessageThatIsTooLong) {
  std::string one(3000, 'a');
  std::string two(5, 'b');
  std::string three(3000, 'c');
  const std::vector<iovec> pieces = {
      {one.data(), one.size()}, {two.data(), two.size()}, {three.data(), three.size()}};
  ASSERT_EQ(send(a_.get(), b_.get(), to_b_, pieces), SKIFCH_MESSAGE_MAX);
  const std::string all = one + two + three;
  EXPECT_EQ(receive(b_.get(), a_.get()), all.substr(0, SKIFCH_MESSAGE_MAX));
}

TEST_F(SkifChPair, MessagesStayUntilTheyAreCompleted) {
  EXPECT_EQ(SkifCh_RecvComp(b_.get()), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(send(a_.get(), b_.get(), to_b_, "first"), 5);
  ASSERT_EQ(send(a_.get(), b_.get(), to_b_, "second"), 6);
  iovec first[SKIFCH_CONT_SIZE];
  iovec second[SKIFCH_CONT_SIZE];
  int count = 0;
  ssize_t got = -1;
  for (uint32_t turn = 0; turn < kTurns && got < 0; ++turn) {
    got = SkifCh_Recv(b_.get(), first, &count);
    work(a_.get());
  }
  ASSERT_EQ(got, 5);
  EXPECT_EQ(SkifCh_Source(b_.get()), to_a_);
  got = -1;
  for (uint32_t turn = 0; turn < kTurns && got < 0; ++turn) {
    got = SkifCh_Recv(b_.get(), second, &count);
    work(a_.get());
  }
  ASSERT_EQ(got, 6);
  EXPECT_EQ(std::memcmp(first[0].iov_base, "first", 5), 0);
  EXPECT_EQ(std::memcmp(second[0].iov_base, "second", 6), 0);
  EXPECT_EQ(SkifCh_RecvComp(b_.get()), 0);
  EXPECT_EQ(SkifCh_RecvComp(b_.get()), 0);
  EXPECT_EQ(SkifCh_RecvComp(b_.get()), -1);
}

TEST_F(SkifChPair, LaterChannelsMustHaveTheOptionsOfTheFirst) {
  rio::test::LogLines log;
  const auto refused = [&](uint32_t SkifCh_Options::*option, uint32_t value, const char* why) {
    SkifCh_Options options = {};
    options.dest_id = 5;
    options.*option = value;
    const Channel channel(SkifCh_Open(wire_.c_str(), 3, &options));
    EXPECT_EQ(channel, nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_TRUE(log.had("SkifCh_Open: " + wire_ + why)) << log.last();
  };
  refused(
      &SkifCh_Options::share, 17,
      " was opened with share 16 by another channel, and this one wants 17; leave it 0, or give "
      "the first channel the same");
  refused(&SkifCh_Options::buffers, 64, " was opened with buffers 3840 by");
  refused(&SkifCh_Options::connect_ms, 1, " was opened with connect_ms 10000 by");
  refused(&SkifCh_Options::sleeps, 1, " was opened with sleeps 0 by");
  refused(&SkifCh_Options::threads, 1, " was opened with threads 0 by another channel, and this");
  SkifCh_Options options = {};
  options.dest_id = 5;
  options.buffers = 3840;
  EXPECT_NE(Channel(SkifCh_Open(wire_.c_str(), 3, &options)), nullptr);
  EXPECT_NE(open(wire_, 3, 5), nullptr) << "the same share";
}

TEST_F(SkifChPair, AWaitForRoomEnds) {
  constexpr uint32_t kLongMs = 60000;
  char byte = 'x';
  const iovec piece = {&byte, 1};
  ASSERT_EQ(SkifCh_Send(a_.get(), to_b_, &piece, 1), -1);  // the peer has not answered yet
  ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(SkifCh_Wait(a_.get(), kLongMs), 1);
  EXPECT_EQ(SkifCh_Wait(a_.get(), 1), 0) << "once";
}

TEST_F(SkifChPair, ASendToAChannelThatDoesNotExistIsRefused) {
  EXPECT_EQ(send(a_.get(), b_.get(), SkifCh_Addr(6, 3), "x"), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(send(a_.get(), b_.get(), SkifCh_Addr(6, SKIFCH_CHANNELS), "x"), -1);
  EXPECT_EQ(errno, EINVAL);
}

// The two channels share a card. One has already begun a new session; the other one is told of the
// old session's end all the same.
TEST_F(SkifChPair, EachChannelIsToldThatThePeerHasGone) {
  const Channel late = open(wire_, 3, 5);
  for (SkifCh* const channel : {a_.get(), late.get()}) {
    ASSERT_EQ(send(channel, b_.get(), to_b_, "one"), 3);
    ASSERT_EQ(receive(b_.get(), channel), "one");
  }
  b_.reset();
  b_ = open(wire_, 2, 6);
  ASSERT_EQ(send(b_.get(), a_.get(), to_a_, "back"), 4);
  ASSERT_EQ(receive(a_.get(), b_.get()), "back");
  for (SkifCh* const channel : {a_.get(), late.get()}) {
    EXPECT_EQ(send(channel, b_.get(), to_b_, "lost"), -1);
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(send(channel, b_.get(), to_b_, "two"), 3);
    EXPECT_EQ(receive(b_.get(), channel), "two");
  }
}

}  // namespace
