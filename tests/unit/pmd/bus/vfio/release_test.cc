// The kernel asks for a card, or reports an error of it, while the program uses it.
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "tests/support/loop_traffic.hpp"
#include "tests/support/vfio_machine.hpp"

namespace rio::test {
namespace {

class ReleaseTest : public testing::TestWithParam<uint32_t> {
 protected:
  [[nodiscard]] int open(const EndpointConfig& config) {
    std::unique_ptr<pmd::Bus> bus;
    const int rc = machine_.open(&bus);
    bus_ = bus.get();
    return rc != 0 ? rc : Endpoint::open(std::move(bus), config, &card_);
  }
  void await_release() {
    while (!machine_.is_released()) {
      std::this_thread::yield();
    }
  }
  void TearDown() override {
    card_.reset();
    for (const std::string& call : machine_.kernel().calls) {
      EXPECT_FALSE(call.starts_with("BAD")) << call;
    }
    EXPECT_TRUE(machine_.kernel().opened.empty());
  }

  VfioMachine machine_;
  pmd::Bus* bus_ = nullptr;  // of card_
  std::unique_ptr<Endpoint> card_;
};

/// The program polls on and asks nothing: the card is given up all the same, and then reads all
/// ones.
TEST_P(ReleaseTest, UnderTraffic) {
  ASSERT_EQ(open(LoopTraffic::config()), 0);
  LoopTraffic traffic(*card_);
  std::atomic<bool> gone = false;
  std::thread program([&] {
    for (uint32_t i = 1; !gone; ++i) {
      traffic.poll();
      gone = i % 64 == 0 && card_->card().gone();
    }
  });
  while (traffic.received() < 1000) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(gone);
  machine_.kernel().signal(GetParam());
  await_release();
  program.join();
  EXPECT_TRUE(machine_.kernel().is_open(pmd::vfio::FakeKernel::kContainer))
      << "closed with the card";
  EXPECT_EQ(card_->wait_link(1000), -ENODEV);
  EXPECT_EQ(card_->close(), -ENODEV);
}

INSTANTIATE_TEST_SUITE_P(Events, ReleaseTest,
                         testing::Values(VFIO_PCI_REQ_IRQ_INDEX, VFIO_PCI_ERR_IRQ_INDEX));

TEST_F(ReleaseTest, WakesAThreadThatSleeps) {
  EndpointConfig config = LoopTraffic::config();
  config.irq_rings = pmd::ring_bit(regs::Ring::kShared);
  ASSERT_EQ(open(config), 0);
  ASSERT_EQ(card_->irq_arm(config.irq_rings), 0);
  machine_.kernel().signal(VFIO_PCI_REQ_IRQ_INDEX);
  pollfd fd{card_->irq_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&fd, 1, -1), 1);
  EXPECT_TRUE(card_->card().gone());
  EXPECT_EQ(card_->irq_ack(), 0);
}

TEST_F(ReleaseTest, TheCardCanBeOpenedAgainBeforeItIsClosed) {
  ASSERT_EQ(open(LoopTraffic::config()), 0);
  machine_.kernel().signal(VFIO_PCI_REQ_IRQ_INDEX);
  await_release();
  std::vector<pmd::IovaRun> runs;
  alignas(4096) static uint8_t page[4096];
  EXPECT_EQ(bus_->dma_map(page, sizeof(page), &runs), -ENODEV);
  std::unique_ptr<pmd::Bus> again;
  EXPECT_EQ(machine_.open(&again), 0);
  EXPECT_EQ(again->dma_map(page, sizeof(page), &runs), 0);
  EXPECT_EQ(card_->close(), -ENODEV);
  EXPECT_EQ(again->bar().read32(0), regs::kMagic) << "a card of its own";
}

TEST_F(ReleaseTest, IsNotWatchedIfThatIsSwitchedOff) {
  std::unique_ptr<pmd::Bus> bus;
  name::Pci name{VfioMachine::kAddress};
  name.release = false;
  ASSERT_EQ(machine_.open(&bus, name), 0);
  EXPECT_TRUE(machine_.kernel().events.empty());
}

TEST_F(ReleaseTest, AKernelThatTellsNothingIsEnough) {
  machine_.kernel().tells.clear();
  ASSERT_EQ(open(LoopTraffic::config()), 0);
  EXPECT_TRUE(machine_.kernel().events.empty());
}

}  // namespace
}  // namespace rio::test
