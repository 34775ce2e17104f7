// Groups, containers and address spaces of iommufd, which the cards of one process share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "pmd/bus/vfio/vfio_bus.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kFirst = "0000:03:00.0";
constexpr const char* kNeighbour = "0000:03:00.1";  // in the first one's group
constexpr const char* kFar = "0000:81:00.0";        // in another group
constexpr size_t kPage = 4096;

class SharingTest : public testing::Test {
 protected:
  SharingTest() {
    tree_.add_device(kFirst, 0x10EE, 0x7210, "vfio-pci", 7);
    tree_.add_device(kNeighbour, 0x10EE, 0x7210, "vfio-pci", 7);
    tree_.add_device(kFar, 0x10EE, 0x7210, "vfio-pci", 8);
  }
  std::unique_ptr<Bus> open(const name::Pci& card) {
    std::unique_ptr<Bus> bus;
    EXPECT_EQ(open_vfio_bus(card, tree_.paths, &bus, kernel_), 0);
    return bus;
  }
  std::string fails(const name::Pci& card, int rc) {
    std::unique_ptr<Bus> bus;
    testing::internal::CaptureStderr();
    EXPECT_EQ(open_vfio_bus(card, tree_.paths, &bus, kernel_), rc);
    return testing::internal::GetCapturedStderr();
  }
  [[nodiscard]] long calls(const std::string& call) const {
    return std::count(kernel_.calls.begin(), kernel_.calls.end(), call);
  }
  uint64_t map(Bus& bus, size_t page) {
    std::vector<IovaRun> runs;
    EXPECT_EQ(bus.dma_map(memory_ + page * kPage, kPage, &runs), 0);
    return runs.empty() ? 0 : runs[0].iova;
  }
  void unmap(Bus& bus, size_t page) { EXPECT_EQ(bus.dma_unmap(memory_ + page * kPage, kPage), 0); }
  void TearDown() override {
    for (const std::string& call : kernel_.calls) {
      EXPECT_FALSE(call.starts_with("BAD")) << call;
    }
    EXPECT_TRUE(kernel_.opened.empty());
    EXPECT_TRUE(kernel_.mapped.empty());
    std::free(memory_);
  }

  FakeTree tree_;
  FakeKernel kernel_{tree_.paths};
  uint8_t* memory_ = static_cast<uint8_t*>(std::aligned_alloc(kPage, 64 * kPage));
};

TEST_F(SharingTest, TwoCardsOfAGroup) {
  auto one = open({kFirst});
  auto two = open({kNeighbour});
  EXPECT_EQ(calls("open group"), 1);
  EXPECT_EQ(calls("open container"), 1);
  const uint64_t at = map(*two, 0);
  EXPECT_NE(map(*one, 0), at) << "each has its own mapping of it";
  one.reset();
  EXPECT_TRUE(kernel_.mapped.contains(at));
  EXPECT_TRUE(kernel_.is_open(FakeKernel::kGroup));
  two.reset();
  EXPECT_FALSE(kernel_.is_open(FakeKernel::kGroup));
}

TEST_F(SharingTest, CardsOfTwoGroupsShareAContainer) {
  auto one = open({kFirst});
  auto two = open({kFar});
  EXPECT_EQ(calls("open group"), 2);
  EXPECT_EQ(calls("open container"), 1);
  EXPECT_EQ(calls("set iommu 3"), 1);
  one.reset();
  (void)map(*two, 0);
  one = open({kFirst});
  EXPECT_EQ(calls("open container"), 1);
}

TEST_F(SharingTest, AContainerThatRefusesAGroupIsNotShared) {
  auto one = open({kFirst});
  kernel_.refusing_container = FakeKernel::kContainer;
  auto two = open({kFar});
  EXPECT_EQ(calls("open container"), 2);
  const uint64_t at = map(*one, 0);
  unmap(*one, 0);
  EXPECT_EQ(map(*two, 0), at) << "two address spaces";
}

TEST_F(SharingTest, AContainerWithoutGroupsIsNotUsedAgain) {
  auto one = open({kFirst});
  (void)map(*one, 0);
  kernel_.signal(VFIO_PCI_REQ_IRQ_INDEX);
  while (kernel_.is_open(FakeKernel::kGroup)) {
    std::this_thread::yield();
  }
  auto again = open({kFirst});
  EXPECT_EQ(calls("open container"), 2);
  one.reset();
  EXPECT_EQ(calls("unmap 4096"), 0);
}

TEST_F(SharingTest, ACardIsOpenedOnce) {
  auto one = open({kFirst});
  EXPECT_NE(fails({kFirst}, -EBUSY).find("this process has it open"), std::string::npos);
  one.reset();
  one = open({kFirst});
}

TEST_F(SharingTest, CardsMayMapTheSamePointers) {
  kernel_.last_iova = (uint64_t{1} << 48) - 1;
  auto one = open({.address = kFirst, .iova_is_va = true});
  auto two = open({.address = kFar, .iova_is_va = true});
  EXPECT_EQ(map(*one, 0), reinterpret_cast<uintptr_t>(memory_));
  EXPECT_EQ(map(*two, 0), reinterpret_cast<uintptr_t>(memory_));
  EXPECT_EQ(calls("map 4096"), 1);
  unmap(*one, 0);
  EXPECT_EQ(kernel_.mapped.size(), 1U);
  unmap(*two, 0);
  EXPECT_TRUE(kernel_.mapped.empty());
}

TEST_F(SharingTest, AddressesAreUsedAgainOnlyAfterAllOthers) {
  tree_.add_cdev(kFirst, 3);
  kernel_.ioas_ranges = 1;
  kernel_.last_iova = (uint64_t{16} << 20) - 1;
  auto card = open({kFirst});
  const uint64_t first = map(*card, 0);
  unmap(*card, 0);
  std::set<uint64_t> seen{first};
  uint64_t at = 0;
  while ((at = map(*card, 1)) != first) {
    unmap(*card, 1);
    ASSERT_TRUE(seen.insert(at).second) << "address " << at << " again before the others";
    ASSERT_FALSE(kernel_.mapped.contains(first)) << "a late access would hit other memory";
  }
  EXPECT_EQ(seen.size(), (14U << 20) / 65536) << "all from 2 MiB on, each 64 KiB apart";
}

TEST_F(SharingTest, AnAddressThatCannotBeUnmappedStaysTaken) {
  auto card = open({kFirst});
  const uint64_t at = map(*card, 0);
  kernel_.ioctl_errors = {{VFIO_IOMMU_UNMAP_DMA, -EIO}};
  testing::internal::CaptureStderr();
  EXPECT_EQ(card->dma_unmap(memory_, kPage), -EIO);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot unmap"), std::string::npos);
  kernel_.ioctl_errors.clear();
  EXPECT_NE(map(*card, 1), at);
  kernel_.mapped.erase(at);
}

TEST_F(SharingTest, IommufdIsTakenWhereAKernelHasNoGroups) {
  tree_.add_cdev(kFirst, 3);
  tree_.add_cdev(kFar, 4);
  auto one = open({kFirst});
  auto two = open({kFar});
  const std::vector<std::string> expected{"open vfio3", "open iommufd", "ioas",       "bind",
                                          "attach",     "ranges",       "device info"};
  ASSERT_GE(kernel_.calls.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), kernel_.calls.begin()))
      << testing::PrintToString(kernel_.calls);
  EXPECT_EQ(calls("ioas"), 1);
  EXPECT_EQ(calls("bind"), 2);
  const uint64_t at = map(*one, 0);
  EXPECT_GE(at, uint64_t{4} << 20) << "the first range is too small";
  EXPECT_NE(map(*two, 0), at);
  unmap(*one, 0);
  kernel_.signal(VFIO_PCI_REQ_IRQ_INDEX);
  while (kernel_.is_open(FakeKernel::kDevice)) {
    std::this_thread::yield();
  }
  EXPECT_EQ(one->bar().read32(0), 0xFFFFFFFF);
  EXPECT_EQ(two->bar().read32(0), regs::kMagic);
}

TEST_F(SharingTest, IommufdIsAChoiceWhereAKernelHasBoth) {
  tree_.add_cdev(kFirst, 3);
  FakeTree::write(tree_.paths.dev + "/vfio/7", "");
  open({kFirst}).reset();
  EXPECT_EQ(calls("open group"), 1);
  kernel_.ioas_ranges = 40;  // more than are asked for at first
  open({.address = kFirst, .iommufd = true}).reset();
  EXPECT_EQ(calls("open group"), 1);
  EXPECT_EQ(calls("ranges"), 2);
}

TEST_F(SharingTest, IommufdSaysWhatIsMissing) {
  const name::Pci card{.address = kFirst, .iommufd = true};
  EXPECT_NE(fails(card, -ENOTSUP).find("CONFIG_VFIO_DEVICE_CDEV"), std::string::npos);
  tree_.add_cdev(kFirst, 3);
  kernel_.open_errors[tree_.paths.dev + "/iommu"] = -ENOENT;
  EXPECT_NE(fails(card, -ENOENT).find("modprobe iommufd"), std::string::npos);
  kernel_.open_errors = {{tree_.paths.dev + "/vfio/devices/vfio3", -EACCES}};
  EXPECT_NE(fails(card, -EACCES).find("chown $USER"), std::string::npos);
  kernel_.open_errors.clear();
  for (const unsigned long step : {0x3B76, 0x3B77, 0x3B81, 0x3B84}) {
    kernel_.ioctl_errors = {{step, -EIO}};
    EXPECT_NE(fails(card, -EIO).find(kFirst), std::string::npos) << step;
  }
  kernel_.ioctl_errors = {{0x3B76, -EPERM}};
  EXPECT_NE(fails(card, -EPERM).find("allow_unsafe_interrupts"), std::string::npos);
  tree_.bind(kNeighbour, "igb");
  kernel_.ioctl_errors = {{0x3B76, -EBUSY}};
  EXPECT_NE(fails(card, -EBUSY).find("0000:03:00.1 (driver igb)"), std::string::npos);
}

TEST_F(SharingTest, ACardWithoutAResetIsResetByItsSlotIfThatIsOurs) {
  kernel_.can_reset = false;
  kernel_.slot = {7, 7};  // both functions are in the card's group
  auto one = open({kFirst});
  EXPECT_EQ(calls("reset slot 1"), 1);
  EXPECT_EQ(kernel_.calls.back(), "write command 2");
  auto two = open({kNeighbour});
  EXPECT_EQ(calls("reset slot 1"), 1) << "it would have reset the first one";
  one.reset();
  two.reset();
  kernel_.slot = {7, 9};  // one belongs to another group
  open({kFirst}).reset();
  EXPECT_EQ(calls("reset slot 1"), 1);
}

TEST_F(SharingTest, AResetByTheSlotThroughIommufd) {
  tree_.add_cdev(kFirst, 3);
  kernel_.can_reset = false;
  kernel_.slot = {0, 5};  // a neighbour that is not open, and the card
  kernel_.slot_flags = 1;
  open({kFirst}).reset();
  EXPECT_EQ(calls("reset slot 0"), 0) << "not all are ours";
  kernel_.slot_flags = 3;
  kernel_.slot = {6, 5};  // this process has both open
  open({kFirst}).reset();
  EXPECT_EQ(calls("reset slot 0"), 0);
  kernel_.slot = {0, 5};
  open({kFirst}).reset();
  EXPECT_EQ(calls("reset slot 0"), 1);
}

TEST_F(SharingTest, NoIommuModeIsRefused) {
  FakeTree::write(tree_.paths.dev + "/vfio/noiommu-7", "");
  const std::string text = fails({kFirst}, -ENOTSUP);
  for (const char* part : {"no-IOMMU mode", "vfio/noiommu-7", "enable_unsafe_noiommu_mode",
                           "intel_iommu=on", "uio_pci_generic"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  open({kFar});
}

}  // namespace
}  // namespace rio::pmd::vfio
