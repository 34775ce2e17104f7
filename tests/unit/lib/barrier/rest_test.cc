// A context leaves the card alone between barriers.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "fpga/model/wire.hpp"
#include "lib/barrier/group.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::barrier::test {
namespace {

constexpr uint16_t kContext = 5;
constexpr uint32_t kDestId = 1;

class AtRest : public testing::Test {
 protected:
  AtRest() {
    std::vector<msg::MessagePort::BusCard> cards;
    cards.push_back({std::make_unique<rio::test::ModelBus>(model::Config{}, model::make_loop_wire(),
                                                           &clock_, 1000),
                     kDestId});
    EXPECT_EQ(msg::MessagePort::open(std::move(cards), {}, &port_), 0);
    EXPECT_EQ(BarrierContext::create(*port_, kContext, &context_), 0);
  }

  /// The clock of the card passes with its steps.
  rio::test::ManualClock clock_;
  std::unique_ptr<msg::MessagePort> port_;
  std::unique_ptr<BarrierContext> context_;
};

TEST_F(AtRest, TheCardIsNotSteppedBetweenBarriers) {
  const std::vector<msg::Address> alone = {msg::address(kDestId, kContext)};
  std::unique_ptr<Group> group;
  ASSERT_EQ(context_->create_group(alone, 0, {}, &group), 0);
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_EQ(group->wait_ready(1000), 1);
    ASSERT_EQ(group->arrive(), 0);
    ASSERT_EQ(group->wait(1000), 1);
    const uint64_t before_ns = clock_.now_ns();
    for (uint32_t calls = 0; calls < 1000; ++calls) {
      context_->attend();
    }
    EXPECT_EQ(clock_.now_ns(), before_ns);
  }
}

}  // namespace
}  // namespace rio::barrier::test
