// A card that is only inspected.
#include "pmd/bus/vfio/inspect.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kAddress = "0000:03:00.0";

class InspectTest : public testing::Test {
 protected:
  void add(const std::string& driver) {
    tree_.add_device(kAddress, 0x10EE, 0x7210, driver, driver == "vfio-pci" ? 7 : -1);
  }
  int open() { return map_bar(kAddress, tree_.paths, &bus_, kernel_); }

  FakeTree tree_;
  FakeKernel kernel_{tree_.paths};
  std::unique_ptr<Bus> bus_;
};

TEST_F(InspectTest, WorksWithAnyDriver) {
  for (const char* const driver : {"", "vfio-pci", "uio_pci_generic"}) {
    FakeTree tree;
    FakeKernel kernel{tree.paths};
    tree.add_device(kAddress, 0x10EE, 0x7210, driver, -1);
    std::unique_ptr<Bus> bus;
    ASSERT_EQ(map_bar(kAddress, tree.paths, &bus, kernel), 0) << driver;
    EXPECT_EQ(bus->bar().read32(0), regs::kMagic);
    EXPECT_EQ(bus->bar().len_bytes(), kBarBytes);
    EXPECT_EQ(bus->name(), kAddress);
    EXPECT_EQ(bus->numa_node(), 1);
    EXPECT_EQ(bus->poll_hook(0).fn, nullptr);
    for (const std::string& call : kernel.calls) {
      EXPECT_EQ(call.find("container"), std::string::npos) << "another program may have it";
      EXPECT_EQ(call.find("reset"), std::string::npos);
    }
  }
}

TEST_F(InspectTest, HasOnlyTheBar) {
  add("vfio-pci");
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  std::vector<IovaRun> runs;
  EXPECT_EQ(bus_->dma_alloc(4096, 4096, &memory), -ENOTSUP);
  EXPECT_EQ(bus_->dma_map(this, 4096, &runs), -ENOTSUP);
  EXPECT_EQ(bus_->dma_unmap(this, 4096), -ENOTSUP);
  EXPECT_EQ(bus_->irq_fd(0), -ENOTSUP);
}

TEST_F(InspectTest, PoweredDownCardIsWokenWithoutAReset) {
  add("vfio-pci");
  tree_.set_word(kAddress, 0, regs::kAllOnes);
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(bus_->bar().read32(0), regs::kMagic);
  EXPECT_NE(std::find(kernel_.calls.begin(), kernel_.calls.end(), "open container"),
            kernel_.calls.end());
  EXPECT_EQ(std::find(kernel_.calls.begin(), kernel_.calls.end(), "reset"), kernel_.calls.end());
  bus_.reset();
  EXPECT_TRUE(kernel_.opened.empty());
}

TEST_F(InspectTest, AllOnesUnderAnotherDriverAreNotAnError) {
  add("uio_pci_generic");
  tree_.set_word(kAddress, 0, regs::kAllOnes);
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(bus_->bar().read32(0), regs::kAllOnes);
}

TEST_F(InspectTest, LackOfRightsIsReported) {
  add("");
  kernel_.open_errors[tree_.device(kAddress) + "/resource0"] = -EACCES;
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), -EACCES);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("sudo"), std::string::npos);
}

TEST_F(InspectTest, MissingBarsAndDevicesAreReported) {
  tree_.add_device(kAddress, 0x10EE, 0x7210, "", -1, 2);  // BAR2, where a card has BAR0
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), -ENXIO);
  EXPECT_EQ(map_bar("0000:09:00.0", tree_.paths, &bus_, kernel_), -ENODEV);
  EXPECT_EQ(map_bar("nonsense", tree_.paths, &bus_, kernel_), -EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("BAR0 has 0 bytes"), std::string::npos);
}

}  // namespace
}  // namespace rio::pmd::vfio
