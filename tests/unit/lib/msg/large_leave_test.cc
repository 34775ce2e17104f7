// A peer leaves when large data is over on its side. The other side, which looks for peers that
// have gone before it looks at what its card has completed, finds it completed all the same.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint32_t kSender = 5;
constexpr uint32_t kReceiver = 6;

class LargeLeave : public ::testing::TestWithParam<uint64_t> {
 protected:
  LargeLeave() {
    setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1);
    a_ = open(kSender);
    b_ = open(kReceiver);
    fill(from_.at(), GetParam(), 1);
  }
  ~LargeLeave() override { unsetenv("RIO_RUNTIME_DIR"); }

  /// @return whether the receiver has granted the transfer.
  [[nodiscard]] bool is_granted() { return begin_granted(*a_, *b_, from_, sent_, to_, received_); }
  static model::Card& card_of(const Node& node) {
    return *dynamic_cast<pmd::EmuBus&>(node.port->endpoint().card().bus()).card();
  }
  /// The node looks only for peers that have gone, until this one has.
  static void see_gone(const Node& node, uint32_t dest_id) {
    model::Card& card = card_of(node);
    ASSERT_TRUE(rio::test::wait_until([&] {
      card.step();
      node.port->look_for_gone();
      return node.port->has_gone(dest_id);
    }));
  }

 private:
  static std::unique_ptr<Node> open(uint32_t dest_id) {
    return std::make_unique<Node>("shm:leave,id=" + std::to_string(dest_id), dest_id);
  }

  rio::test::TempDir dir_;

 protected:
  const Area from_{GetParam(), 3, 0x11};
  const Area to_{GetParam(), 9, 0x22};
  SendTransfer sent_;
  RecvTransfer received_;
  std::unique_ptr<Node> a_;  // closed before the memory goes
  std::unique_ptr<Node> b_;
};

TEST_P(LargeLeave, DeliveredBytesAreReceived) {
  ASSERT_TRUE(is_granted());
  // From now on only the receiver's card works.
  model::Card& card = card_of(*b_);
  ASSERT_TRUE(rio::test::wait_until([&] {
    a_->port->progress();
    card.step();
    return sent_.done;
  }));
  ASSERT_EQ(sent_.status, 0);
  ASSERT_FALSE(received_.done);
  a_.reset();
  see_gone(*b_, kSender);
  ASSERT_TRUE(work({b_.get()}, [this] { return received_.done; }));
  EXPECT_EQ(received_.status, 0);
  EXPECT_TRUE(std::equal(from_.at(), from_.at() + GetParam(), to_.at()));
  EXPECT_TRUE(to_.guarded(GetParam()));
}

TEST_P(LargeLeave, ReceivedBytesAreSent) {
  ASSERT_TRUE(is_granted());
  ASSERT_TRUE(work({a_.get()}, [this] { return sent_.grant.out() != 0; }))
      << "all that was granted";
  // From now on only the sender's card works.
  model::Card& card = card_of(*a_);
  ASSERT_TRUE(rio::test::wait_until([&] {
    b_->port->progress();
    card.step();
    return received_.done;
  }));
  ASSERT_FALSE(sent_.done);
  ASSERT_EQ(received_.status, 0);
  b_.reset();
  see_gone(*a_, kReceiver);
  ASSERT_TRUE(work({a_.get()}, [this] { return sent_.done; }));
  EXPECT_EQ(sent_.status, 0);
}

INSTANTIATE_TEST_SUITE_P(Bytes, LargeLeave, ::testing::Values(4096, 5000, 70'000));

}  // namespace
}  // namespace rio::msg::test
