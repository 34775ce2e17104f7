// The core of Open MPI's component mtl/rio: two processes' worth of it in one, over emulated cards.
#include "lib/ompi/mtl_core.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "lib/job/name.hpp"
#include "lib/msg/crowd.hpp"

namespace {

using rio::job::Name;

constexpr uint64_t kBits = 0x0001'0002'0000'0007;
constexpr auto kPatience = std::chrono::seconds(60);

/// An operation, and how it has ended.
struct Operation {
  rio_mtl_operation core{};  // first: the callbacks get its address
  int ended = 0;
  int status = 1;
  uint64_t bits = 0;
  uint64_t length_bytes = 0;
};

[[nodiscard]] Operation& of(rio_mtl_operation* core) {
  return *reinterpret_cast<Operation*>(core);
}

[[nodiscard]] std::vector<uint8_t> pattern(size_t bytes) {
  std::vector<uint8_t> made(bytes);
  std::iota(made.begin(), made.end(), uint8_t{3});
  return made;
}

/// @param threads of the processes: whether each call takes the port's lock.
class MtlCore : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("RIO_PROFILE", "none", 1), 0);
    ASSERT_EQ(setenv("FI_RIO_FABRIC", ("mtl-core-" + std::to_string(getpid())).c_str(), 1), 0);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(rio_mtl_open(GetParam(), &ends_[i]), 0);
      ASSERT_TRUE(rio_mtl_name(ends_[i], &names_[i]));
    }
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(rio_mtl_meet(ends_[i], &names_[1 - i], &peers_[i]), 0);
    }
  }
  void TearDown() override {
    for (rio_mtl* const end : ends_) {
      if (end != nullptr) {
        rio_mtl_close(end);
      }
    }
  }

  /// Both ends work until `ready()`. @return false: it never came.
  template <class Ready>
  [[nodiscard]] bool work_until(Ready&& ready) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!ready()) {
      rio_mtl_progress(ends_[0]);
      rio_mtl_progress(ends_[1]);
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }
  /// Begins a send of end 0. @return what has ended.
  void send(const std::vector<uint8_t>& data, Operation* operation, bool sync = false) {
    const int rc =
        sync ? rio_mtl_send_sync(ends_[0], peers_[0], kBits, data.data(), data.size(),
                                 &operation->core)
             : rio_mtl_send(ends_[0], peers_[0], kBits, data.data(), data.size(), &operation->core);
    ASSERT_GE(rc, 0);
    operation->ended += rc;
    operation->status = rc == 1 ? 0 : operation->status;
  }
  [[nodiscard]] int receive(std::vector<uint8_t>* into, Operation* operation, uint64_t ignore = 0) {
    return rio_mtl_receive(ends_[1], peers_[1], kBits & ~ignore, ignore, into->data(), into->size(),
                           &operation->core);
  }
  /// A short message from end 0, also while the peer is new.
  void send_copied(const std::vector<uint8_t>& data) {
    ASSERT_TRUE(work_until([&] {
      return rio_mtl_send_copied(ends_[0], peers_[0], kBits, data.data(), data.size()) == 1;
    }));
  }

  rio_mtl* ends_[2] = {};
  Name names_[2] = {};
  uint32_t peers_[2] = {};
};

TEST_P(MtlCore, MessagesOfEachLengthArrive) {
  for (const size_t bytes : {0, 1, 64, 65, 1000, 4064, 4065, 20'000, 300'000}) {
    const std::vector<uint8_t> sent = pattern(bytes);
    for (int round = 0; round < 3; ++round) {  // also by the short ways, which need a send before
      std::vector<uint8_t> got(bytes + 1);
      Operation out;
      Operation in;
      ASSERT_EQ(receive(&got, &in), 0);
      send(sent, &out);
      ASSERT_TRUE(work_until([&] { return in.ended == 1 && out.ended == 1; })) << bytes;
      EXPECT_EQ(in.status, 0);
      EXPECT_EQ(out.status, 0);
      EXPECT_EQ(in.bits, kBits);
      EXPECT_EQ(in.length_bytes, bytes);
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin())) << bytes;
    }
  }
}

TEST_P(MtlCore, ACopiedSendLeavesTheMemoryToItsCaller) {
  constexpr int kMessages = 2000;  // more than a peer has room for
  for (int i = 0; i < kMessages; ++i) {
    std::vector<uint8_t> sent(100, static_cast<uint8_t>(i));
    send_copied(sent);
    std::fill(sent.begin(), sent.end(), uint8_t{0xEE});
  }
  for (int i = 0; i < kMessages; ++i) {
    std::vector<uint8_t> got(100);
    Operation in;
    ASSERT_EQ(receive(&got, &in), 0);
    ASSERT_TRUE(work_until([&] { return in.ended == 1; })) << i;
    EXPECT_EQ(got, std::vector<uint8_t>(100, static_cast<uint8_t>(i)));
  }
}

/// A peer that takes nothing costs its sender a bounded amount of memory.
TEST_P(MtlCore, CopiesThatWaitAreBounded) {
  constexpr uint32_t kTries = 20'000;
  constexpr uint32_t kCopiesMax = 4096;
  const std::vector<uint8_t> first = pattern(100);
  std::vector<uint8_t> got(first.size());
  Operation in;
  ASSERT_EQ(receive(&got, &in), 0);
  send_copied(first);  // from now on the peer is not new
  ASSERT_TRUE(work_until([&] { return in.ended == 1; }));
  uint32_t sent = 0;
  int rc = 1;
  while (rc == 1 && sent < kTries) {
    const std::vector<uint8_t> data(100, static_cast<uint8_t>(sent));
    rc = rio_mtl_send_copied(ends_[0], peers_[0], kBits, data.data(), data.size());
    sent += rc == 1 ? 1 : 0;
  }
  EXPECT_EQ(rc, -EAGAIN);
  EXPECT_GE(sent, kCopiesMax);
  for (uint32_t i = 0; i < sent; ++i) {
    Operation later;
    ASSERT_EQ(receive(&got, &later), 0);
    ASSERT_TRUE(work_until([&] { return later.ended == 1; })) << i;
    ASSERT_EQ(got, std::vector<uint8_t>(100, static_cast<uint8_t>(i))) << i;
  }
  send_copied(first);
}

TEST_P(MtlCore, AMessageThatIsTooLongFillsTheBuffer) {
  const std::vector<uint8_t> sent = pattern(200);
  std::vector<uint8_t> got(150);
  Operation in;
  ASSERT_EQ(receive(&got, &in), 0);
  send_copied(sent);
  ASSERT_TRUE(work_until([&] { return in.ended == 1; }));
  EXPECT_EQ(in.status, -EMSGSIZE);
  EXPECT_EQ(in.length_bytes, 200u);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
}

TEST_P(MtlCore, ASynchronousSendWaitsForItsReceive) {
  const std::vector<uint8_t> sent = pattern(8);
  Operation out;
  send(sent, &out, true);
  rio_mtl_message found{};
  ASSERT_TRUE(
      work_until([&] { return rio_mtl_probe(ends_[1], RIO_MTL_ANY_SOURCE, kBits, 0, &found); }));
  EXPECT_EQ(out.ended, 0);
  std::vector<uint8_t> got(8);
  Operation in;
  ASSERT_EQ(receive(&got, &in), 0);
  ASSERT_TRUE(work_until([&] { return in.ended == 1 && out.ended == 1; }));
  EXPECT_EQ(out.status, 0);
  EXPECT_EQ(got, sent);
}

TEST_P(MtlCore, AClaimedMessageIsForItsHolder) {
  const std::vector<uint8_t> first = pattern(10);
  const std::vector<uint8_t> second(20, 0x55);
  send_copied(first);
  send_copied(second);
  rio_mtl_message found{};
  void* claimed = nullptr;
  ASSERT_TRUE(work_until([&] {
    claimed = rio_mtl_claim(ends_[1], peers_[1], 0, ~0ull, &found);
    return claimed != nullptr;
  }));
  EXPECT_EQ(found.bits, kBits);
  EXPECT_EQ(found.length_bytes, 10u);
  std::vector<uint8_t> got(20);
  Operation in;
  ASSERT_EQ(receive(&got, &in), 0);
  ASSERT_TRUE(work_until([&] { return in.ended == 1; }));
  EXPECT_EQ(got, second);
  Operation last;
  got.assign(10, 0);
  ASSERT_EQ(rio_mtl_receive_claimed(ends_[1], claimed, got.data(), got.size(), &last.core), 0);
  ASSERT_TRUE(work_until([&] { return last.ended == 1; }));
  EXPECT_EQ(got, first);
}

TEST_P(MtlCore, ACancelledReceiveEndsAndTakesNothing) {
  std::vector<uint8_t> got(8);
  Operation cancelled;
  ASSERT_EQ(receive(&got, &cancelled, 0xFFFF), 0);
  EXPECT_TRUE(rio_mtl_cancel(ends_[1], &cancelled.core));
  ASSERT_TRUE(work_until([&] { return cancelled.ended == 1; }));
  EXPECT_EQ(cancelled.status, -ECANCELED);
  Operation in;
  ASSERT_EQ(receive(&got, &in), 0);
  send_copied(pattern(8));
  ASSERT_TRUE(work_until([&] { return in.ended == 1; }));
  EXPECT_FALSE(rio_mtl_cancel(ends_[1], &in.core));
}

TEST_P(MtlCore, AReceiveWithAMessageIsNotCancelled) {
  const std::vector<uint8_t> sent = pattern(1 << 20);
  Operation out;
  send(sent, &out);
  rio_mtl_message found{};
  ASSERT_TRUE(
      work_until([&] { return rio_mtl_probe(ends_[1], RIO_MTL_ANY_SOURCE, kBits, 0, &found); }));
  std::vector<uint8_t> got(sent.size());
  Operation in;
  ASSERT_EQ(receive(&got, &in), 0);
  ASSERT_EQ(in.ended, 0);
  EXPECT_FALSE(rio_mtl_cancel(ends_[1], &in.core));
  ASSERT_TRUE(work_until([&] { return in.ended == 1 && out.ended == 1; }));
  EXPECT_EQ(in.status, 0);
  EXPECT_EQ(out.status, 0);
  EXPECT_EQ(got, sent);
}

TEST_P(MtlCore, NamesThatAreNoneAreRefused) {
  Name name = names_[1];
  uint32_t peer = 0;
  name.magic ^= 1;
  EXPECT_EQ(rio_mtl_meet(ends_[0], &name, &peer), -EINVAL);
  name = names_[1];
  std::memset(name.address, 'x', sizeof(name.address));  // without an end
  EXPECT_EQ(rio_mtl_meet(ends_[0], &name, &peer), -EINVAL);
  name = names_[1];
  name.fabric ^= 1;
  EXPECT_EQ(rio_mtl_meet(ends_[0], &name, &peer), -EHOSTUNREACH);
  name = names_[0];
  name.owner ^= 1;  // another process with our destID
  EXPECT_EQ(rio_mtl_meet(ends_[0], &name, &peer), -EADDRINUSE);
}

TEST_P(MtlCore, TheProcessThatWasNamedLastHasADestId) {
  Name successor = names_[1];
  successor.owner ^= 1;
  uint32_t peer = 0;
  EXPECT_EQ(rio_mtl_meet(ends_[0], &names_[1], &peer), 0);
  EXPECT_EQ(rio_mtl_meet(ends_[0], &successor, &peer), 0);
  EXPECT_EQ(peer, peers_[0]);
  EXPECT_EQ(rio_mtl_meet(ends_[0], &names_[1], &peer), -ECONNRESET);
}

INSTANTIATE_TEST_SUITE_P(Threads, MtlCore, testing::Bool());

TEST(MtlCoreCrowd, TheMessagesAreToldOfACrowd) {
  for (const bool is_crowd : {true, false}) {
    rio_mtl_tell_crowd(is_crowd);
    EXPECT_EQ(rio::msg::is_crowd(), is_crowd);
  }
}

TEST(MtlCoreOpen, ASettingThatMakesNoSenseIsRefused) {
  ASSERT_EQ(setenv("FI_RIO_BORDER", "64KB", 1), 0);
  rio_mtl* end = nullptr;
  EXPECT_EQ(rio_mtl_open(false, &end), -EINVAL);
  EXPECT_EQ(unsetenv("FI_RIO_BORDER"), 0);
  EXPECT_EQ(end, nullptr);
}

}  // namespace

void mtl_rio_sent(rio_mtl_operation* operation, int status) {
  ++of(operation).ended;
  of(operation).status = status;
}

void mtl_rio_received(rio_mtl_operation* operation, int status, uint64_t bits,
                      uint64_t length_bytes) {
  Operation& ended = of(operation);
  ++ended.ended;
  ended.status = status;
  ended.bits = bits;
  ended.length_bytes = length_bytes;
}
