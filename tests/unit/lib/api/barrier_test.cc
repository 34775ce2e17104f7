// rio_barrier_*: groups of this process, and arguments that are refused.
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kContext = 7;

class RioBarrier : public RioMsgPorts {
 protected:
  RioBarrier() {
    EXPECT_RC(api::Barrier::open(a_, kContext, &first_), 0);
    EXPECT_RC(api::Barrier::open(b_, kContext, &second_), 0);
  }
  [[nodiscard]] std::vector<rio_msg_address> both() const {
    return {first_.self(), second_.self()};
  }
  /// Lets both members work until `done()`.
  template <class Done>
  bool work(const Done& done) {
    return until([&] {
      EXPECT_RC(first_.progress(), 0);
      EXPECT_RC(second_.progress(), 0);
      return done();
    });
  }

  api::Barrier first_;
  api::Barrier second_;
};

class RioBarrierWays : public RioBarrier, public testing::WithParamInterface<uint32_t> {};

TEST_P(RioBarrierWays, TwoMembersMeet) {
  api::BarrierGroup one;
  api::BarrierGroup other;
  rio_barrier_options options = api::barrier_options();
  options.way = GetParam();
  options.schedule = "classic";
  options.key = 9;
  EXPECT_RC(api::BarrierGroup::create(first_, both(), 0, options, &one), 0);
  EXPECT_EQ(rio_barrier_way_of(one.get()), static_cast<uint32_t>(RIO_BARRIER_ANY));
  EXPECT_RC(one.arrive(), -EAGAIN);
  EXPECT_RC(one.wait_ready(0), 0);
  EXPECT_RC(api::BarrierGroup::create(second_, both(), 1, options, &other), 0);
  ASSERT_TRUE(work([&] { return one.wait_ready(0) == 1 && other.wait_ready(0) == 1; }));
  EXPECT_EQ(rio_barrier_way_of(one.get()), GetParam());
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_RC(one.arrive(), 0);
    EXPECT_RC(one.test(), 0);
    EXPECT_RC(one.wait(0), 0);
    EXPECT_RC(one.arrive(), -EBUSY);
    EXPECT_RC(other.arrive(), 0);
    ASSERT_TRUE(work([&] { return one.test() == 1 && other.test() == 1; }));
  }
  EXPECT_EQ(one.failure().error, 0);
  EXPECT_EQ(one.failure().rank, RIO_BARRIER_NO_RANK);
}

INSTANTIATE_TEST_SUITE_P(Ways, RioBarrierWays,
                         testing::Values(RIO_BARRIER_CARD, RIO_BARRIER_SOFTWARE,
                                         RIO_BARRIER_MEMORY));

TEST_F(RioBarrier, FailureIsToldByEveryCall) {
  api::BarrierGroup one;
  api::BarrierGroup other;
  EXPECT_RC(api::BarrierGroup::create(first_, both(), 0, api::barrier_options(), &one), 0);
  EXPECT_RC(api::BarrierGroup::create(second_, both(), 1, api::barrier_options(), &other), 0);
  ASSERT_TRUE(work([&] { return one.wait_ready(0) == 1 && other.wait_ready(0) == 1; }));
  EXPECT_RC(one.arrive(), 0);
  other = {};
  ASSERT_TRUE(work([&] { return one.test() != 0; }));
  EXPECT_RC(one.test(), -ECONNREFUSED);
  EXPECT_RC(one.wait(0), -ECONNREFUSED);
  EXPECT_RC(one.run(0), -ECONNREFUSED);
  EXPECT_RC(one.wait_ready(0), -ECONNREFUSED);
  EXPECT_EQ(one.failure().error, -ECONNREFUSED);
  EXPECT_EQ(one.failure().rank, 1u);
}

TEST_F(RioBarrier, BadArgumentsAreRefused) {
  api::BarrierGroup group;
  const auto create = [&](const rio_barrier_options& options) {
    return api::BarrierGroup::create(first_, both(), 0, options, &group);
  };
  rio_barrier_options options = api::barrier_options();
  options.schedule = "star";
  EXPECT_RC(create(options), -EINVAL);
  options = api::barrier_options();
  options.way = RIO_BARRIER_MEMORY + 1;
  EXPECT_RC(create(options), -EINVAL);
  options = api::barrier_options();
  options.size_bytes = 3;
  EXPECT_RC(create(options), -EINVAL);
  options = api::barrier_options();
  options.create_ms = 3'600'001;
  EXPECT_RC(create(options), -EINVAL);
  EXPECT_RC(api::BarrierGroup::create(first_, both(), 1, api::barrier_options(), &group), -EINVAL);
  EXPECT_RC(rio_barrier_create(first_.get(), nullptr, 2, 0, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(group.get(), nullptr);

  api::Barrier twice;
  EXPECT_RC(api::Barrier::open(a_, kContext, &twice), -EBUSY);
  EXPECT_RC(api::Barrier::open(a_, RIO_MSG_CONTEXTS, &twice), -EINVAL);
}

TEST_F(RioBarrier, GroupsAreDestroyedBeforeTheirContext) {
  api::BarrierGroup group;
  const std::vector<rio_msg_address> alone = {first_.self()};
  EXPECT_RC(api::BarrierGroup::create(first_, alone, 0, api::barrier_options(), &group), 0);
  EXPECT_RC(group.wait_ready(0), 1);
  EXPECT_RC(group.run(0), 1);
  EXPECT_RC(rio_barrier_close(first_.get()), -EBUSY);
  EXPECT_RC(rio_msg_close(a_.get()), -EBUSY);
  group = {};
  EXPECT_RC(rio_barrier_close(nullptr), 0);
  rio_barrier_destroy(nullptr);
}

/// Members on threads, which sleep while they wait.
TEST(RioBarrierThreads, SleepingMembersWakeUp) {
  constexpr uint32_t kMembers = 3;
  TempDir dir;
  setenv("RIO_RUNTIME_DIR", dir.at("").c_str(), 1);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kMembers; ++rank) {
    threads.emplace_back([rank] {
      api::Port port = open_port("shm:threads,id=" + std::to_string(rank + 1), 0, false, true);
      api::Barrier barrier;
      api::BarrierGroup group;
      EXPECT_RC(api::Barrier::open(port, kContext, &barrier), 0);
      std::vector<rio_msg_address> members;
      for (uint32_t other = 0; other < kMembers; ++other) {
        members.push_back(rio_msg_address_of(other + 1, kContext));
      }
      EXPECT_RC(api::BarrierGroup::create(barrier, members, rank, api::barrier_options(), &group),
                0);
      EXPECT_RC(group.wait_ready(kLongMs), 1);
      for (uint32_t i = 0; i < 100; ++i) {
        EXPECT_RC(group.run(kLongMs), 1);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  unsetenv("RIO_RUNTIME_DIR");
}

}  // namespace
}  // namespace rio::test
