// When a card may access memory: after its reset, and never again once it is closed.
#include "pmd/bus/vfio/bus_master.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "tests/support/loop_traffic.hpp"
#include "tests/support/vfio_machine.hpp"

namespace rio::test {
namespace {

using pmd::vfio::FakeKernel;
using pmd::vfio::FakeTree;

constexpr const char* kAddress = VfioMachine::kAddress;
constexpr uint16_t kMaster = 4;

using Calls = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A card of this machine's kernel, which answers nothing but its magic.
class BusMasterTest : public testing::TestWithParam<const char*> {
 protected:
  void insert(const std::string& driver) {
    tree_.add_device(kAddress, 0x10EE, 0x7210, driver, driver == "vfio-pci" ? 7 : -1);
    kernel_.hugepages = 16;
  }
  [[nodiscard]] int open() {
    return pmd::vfio::open_vfio_bus({kAddress}, tree_.paths, &bus_, kernel_);
  }
  /// Opens a card as bus master and closes it. @return the log of the close; its calls are in
  /// kernel_.calls. @param gone the card vanishes in between.
  std::string close(bool gone = false) {
    EXPECT_EQ(open(), 0);
    EXPECT_EQ(bus_->dma_alloc(4096, 4096, &memory_), 0);
    EXPECT_EQ(bus_->start_dma(), 0);
    EXPECT_EQ(kernel_.command, 2 | kMaster);
    kernel_.calls.clear();
    kernel_.gone = gone;
    bus_->dma_free(memory_);
    testing::internal::CaptureStderr();
    bus_.reset();
    return testing::internal::GetCapturedStderr();
  }

  FakeTree tree_;
  FakeKernel kernel_{tree_.paths};
  std::unique_ptr<pmd::Bus> bus_;
  pmd::DmaMemory memory_;
};

TEST_P(BusMasterTest, ACloseWaitsForRequestsThatAreUnderWay) {
  insert(GetParam());
  kernel_.pending = 2;
  EXPECT_EQ(close(), "");
  const Calls expected{"read command",     "write command 2",  "read command",
                       "requests pending", "requests pending", "no request pending"};
  ASSERT_GE(kernel_.calls.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), kernel_.calls.begin()))
      << testing::PrintToString(kernel_.calls) << ": then memory is unmapped";
  EXPECT_EQ(kernel_.naps, 2);
}

TEST_P(BusMasterTest, AConventionalCardHasNoRequestsToWaitFor) {
  insert(GetParam());
  kernel_.has_express = false;
  kernel_.pending = 2;
  EXPECT_EQ(close(), "");
  EXPECT_EQ(kernel_.naps, 0);
}

TEST_P(BusMasterTest, ALostCardNeedsNoStop) {
  insert(GetParam());
  kernel_.pending = 2;
  EXPECT_EQ(close(true), "");
  EXPECT_EQ(kernel_.naps, 0);
}

INSTANTIATE_TEST_SUITE_P(Drivers, BusMasterTest, testing::Values("vfio-pci", "uio_pci_generic"));

TEST_F(BusMasterTest, BehindAnIommuMemoryIsFreedAllTheSame) {
  insert("vfio-pci");
  kernel_.pending = 1'000'000;
  EXPECT_TRUE(has(close(), "cannot end its accesses to memory"));
  EXPECT_EQ(kernel_.naps, 1000) << "a second";
  EXPECT_TRUE(kernel_.mapped.empty());
}

TEST_F(BusMasterTest, UnderUioTheMemoryOfACardThatGoesOnLeaks) {
  insert("uio_pci_generic");
  kernel_.stuck_master = true;
  const std::string text = close();
  EXPECT_TRUE(has(text, "cannot end its accesses to memory")) << text;
  EXPECT_TRUE(has(text, "2 MiB stay allocated")) << text;
  ASSERT_EQ(kernel_.huge.size(), 1u);
  *static_cast<uint8_t*>(memory_.va) = 1;  // still mapped
  kernel_.stuck_master = false;
  EXPECT_EQ(close(), "");
  EXPECT_EQ(kernel_.huge.size(), 1u) << "the other card's";
}

TEST_F(BusMasterTest, ACardIsAskedForItsMagicUntilItsResetIsOver) {
  insert("vfio-pci");
  kernel_.set_magic(0xFFFFFFFF);
  kernel_.on_nap = [this] {
    if (kernel_.naps == 900) {
      kernel_.set_magic(regs::kMagic);
    }
  };
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(kernel_.naps, 900);
  bus_.reset();
  kernel_.set_magic(0xFFFFFFFF);
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), -ENODEV);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "all ones for a second"));
  EXPECT_EQ(kernel_.naps, 1900);
}

/// The whole driver, on a model of a card that an earlier program left running.
class OrderTest : public testing::Test {
 protected:
  OrderTest() {
    machine_->kernel().on_command = [this](uint16_t command) {
      const bool was = (machine_->kernel().command & kMaster) != 0;
      const bool is = (command & kMaster) != 0;
      if (is && !was) {
        generations_.push_back(
            word(regs::id::gen_req()) == word(regs::id::gen_ack()) ? word(regs::id::gen_ack()) : 0);
      } else if (was && !is) {
        running_ = 0;
        for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
          running_ += regs::qp::RingStatus::state.get(word(regs::qp::ring_status(0, ring))) != 0;
        }
      }
    };
  }
  [[nodiscard]] uint32_t word(uint32_t offset_bytes) {
    return pmd::Mmio(machine_->kernel().bar(), machine_->kernel().bar_len).read32(offset_bytes);
  }
  [[nodiscard]] int open(const EndpointConfig& config = LoopTraffic::config()) {
    std::unique_ptr<pmd::Bus> bus;
    const int rc = machine_->open(&bus);
    return rc == 0 ? Endpoint::open(std::move(bus), config, &card_) : rc;
  }

  std::unique_ptr<VfioMachine> machine_ = std::make_unique<VfioMachine>(2);
  std::vector<uint32_t> generations_;  // answered when mastering began; 0: not yet answered
  int running_ = -1;                   // rings that ran when it ended
  std::unique_ptr<Endpoint> card_;
};

TEST_F(OrderTest, ACardIsBusMasterFromItsResetToItsLastStop) {
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(generations_.size(), 1u);
  EXPECT_NE(generations_[0], 0u);
  LoopTraffic traffic(*card_);
  while (traffic.received() < 100) {
    traffic.poll();
  }
  EXPECT_EQ(running_, -1);
  EXPECT_EQ(card_->close(), 0);
  EXPECT_EQ(running_, 0);
  card_.reset();
  EXPECT_EQ(machine_->kernel().command & kMaster, 0);
}

/// Its memory goes back to the kernel when the program ends.
TEST_F(OrderTest, ACardThatDoesNotStopIsSilencedAllTheSame) {
  EndpointConfig config = LoopTraffic::config();
  config.queues.rings = pmd::ring_bit(regs::Ring::kEvent);
  config.queues.stop_timeout_ms = 500;
  ASSERT_EQ(open(config), 0);
  std::unique_ptr<Endpoint> other;
  config.queue_pair = 1;
  ASSERT_EQ(card_->open_queue_pair(config, &other), 0);
  machine_->halt();
  EXPECT_EQ(other->close(), -ETIMEDOUT);
  EXPECT_EQ(machine_->kernel().command & kMaster, kMaster) << "the first queue pair's";
  EXPECT_EQ(card_->close(), -ETIMEDOUT);
  EXPECT_EQ(machine_->kernel().command & kMaster, 0);
  // The memory that stays allocated is mapped by this kernel.
  static std::vector<VfioMachine*> kept;
  kept.push_back(machine_.release());
}

TEST_F(OrderTest, ACardThatWasLeftRunningIsSilentFirst) {
  ASSERT_EQ(open(), 0);
  const uint32_t before = word(regs::id::gen_ack());
  {
    LoopTraffic traffic(*card_);
    while (traffic.received() < 100) {
      traffic.poll();
    }
  }
  machine_->kernel().signal(VFIO_PCI_REQ_IRQ_INDEX);
  while (!machine_->is_released()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(card_->close(), -ENODEV);
  machine_->kernel().command = 0;  // by the kernel
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(generations_.size(), 2u);
  EXPECT_NE(generations_[1], 0u);
  EXPECT_NE(generations_[1], before) << "the answer to the program before";
  EXPECT_EQ(card_->close(), 0);
}

}  // namespace
}  // namespace rio::test
