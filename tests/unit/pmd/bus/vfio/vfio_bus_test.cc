#include "pmd/bus/vfio/vfio_bus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/bus_error.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kAddress = "0000:03:00.0";

class VfioBusTest : public testing::Test {
 protected:
  VfioBusTest() { tree_.add_device(kAddress, 0x10EE, 0x7210, "vfio-pci", 7); }

  int open(const name::Pci& card = {kAddress}) {
    return open_vfio_bus(card, tree_.paths, &bus_, kernel_);
  }
  /// Opens the card, which must fail. @return the log.
  std::string fails(int rc) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(open(), rc);
    EXPECT_EQ(bus_, nullptr);
    EXPECT_TRUE(kernel_.opened.empty()) << "a file descriptor is left open";
    return testing::internal::GetCapturedStderr();
  }
  void expect_no_bad_call() {
    for (const std::string& call : kernel_.calls) {
      EXPECT_NE(call.rfind("BAD", 0), 0u) << call;
    }
  }
  void TearDown() override {
    bus_.reset();
    expect_no_bad_call();
    EXPECT_TRUE(kernel_.opened.empty());
    EXPECT_TRUE(kernel_.mapped.empty());
  }

  FakeTree tree_;
  FakeKernel kernel_{tree_.paths};
  std::unique_ptr<Bus> bus_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(VfioBusTest, OpensInTheKernelsOrder) {
  ASSERT_EQ(open(), 0);
  const std::vector<std::string> expected{
      "open group",      "group status", "open container", "version",    "extension 3",
      "set container",   "set iommu 3",  "iommu info",     "iommu info", "device 0000:03:00.0",
      "device info",     "region 0",     "mmap bar",       "region 7",   "read command",
      "write command 2", "irq info 4",   "watch 4",        "irq info 3", "watch 3",
      "reset",           "read command", "write command 2"};
  EXPECT_EQ(kernel_.calls, expected);
  EXPECT_EQ(kernel_.command, 0x2) << "no bus master yet";
  EXPECT_EQ(bus_->name(), kAddress);
  EXPECT_EQ(bus_->numa_node(), 1);
  EXPECT_EQ(bus_->bar().len_bytes(), kBarBytes);
  EXPECT_EQ(bus_->bar().read32(0), regs::kMagic);
  EXPECT_EQ(bus_->poll_hook(0).fn, nullptr);
  EXPECT_EQ(bus_->emulation().set_faults(1, 0.5), -ENOTSUP);
  EXPECT_EQ(bus_->emulation().dest_id(), 0u);
  kernel_.calls.clear();
  bus_.reset();
  const std::vector<std::string> closed{
      "read command", "write command 2", "read command", "no request pending",
      "munmap bar",   "close 2",         "close 1",      "close 0"};
  EXPECT_EQ(kernel_.calls, closed);
}

TEST_F(VfioBusTest, WorksWithAnOlderIommuAndWithoutReset) {
  kernel_.extensions = {VFIO_TYPE1_IOMMU};
  kernel_.can_reset = false;
  kernel_.tell_ranges = false;
  testing::internal::CaptureStderr();
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a device without a reset is no warning";
  EXPECT_NE(std::find(kernel_.calls.begin(), kernel_.calls.end(), "set iommu 1"),
            kernel_.calls.end());
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(4096, 4096, &memory), 0);
}

TEST_F(VfioBusTest, AnUnboundCardIsReported) {
  std::filesystem::remove(tree_.device(kAddress) + "/driver");
  std::string text = fails(-EBUSY);
  EXPECT_TRUE(has(text, "bound to no driver")) << text;
  EXPECT_TRUE(has(text, "driverctl set-override 0000:03:00.0 vfio-pci")) << text;
  EXPECT_TRUE(has(text, "echo vfio-pci > /sys/bus/pci/devices/0000:03:00.0/driver_override"));
  tree_.bind(kAddress, "xdma");
  text = fails(-EBUSY);
  EXPECT_TRUE(has(text, "the driver xdma")) << text;
}

TEST_F(VfioBusTest, AMissingIommuIsReported) {
  std::filesystem::remove(tree_.device(kAddress) + "/iommu_group");
  const std::string text = fails(-ENODEV);
  EXPECT_TRUE(has(text, "intel_iommu=on")) << text;
  EXPECT_TRUE(has(text, "uio_pci_generic")) << text;
}

TEST_F(VfioBusTest, AMissingModuleIsReported) {
  kernel_.open_errors[tree_.paths.dev + "/vfio/vfio"] = -ENOENT;
  EXPECT_TRUE(has(fails(-ENOENT), "modprobe vfio-pci"));
}

TEST_F(VfioBusTest, AWrongVfioIsReported) {
  kernel_.api_version = 1;
  EXPECT_TRUE(has(fails(-EPROTO), "version 1"));
  kernel_.api_version = 0;
  kernel_.extensions.clear();
  EXPECT_TRUE(has(fails(-ENOTSUP), "vfio_iommu_type1"));
}

TEST_F(VfioBusTest, AGroupThatCannotBeOpenedIsReported) {
  const std::string path = tree_.paths.dev + "/vfio/7";
  kernel_.open_errors[path] = -EACCES;
  EXPECT_TRUE(has(fails(-EACCES), "chown $USER " + path));
  kernel_.open_errors[path] = -EBUSY;
  EXPECT_TRUE(has(fails(-EBUSY), "another process"));
  kernel_.open_errors[path] = -ENOENT;
  EXPECT_TRUE(has(fails(-ENOENT), "driverctl"));
}

TEST_F(VfioBusTest, AGroupThatIsNotViableNamesTheOtherDevice) {
  tree_.add_device("0000:03:00.1", 0x8086, 0x1533, "igb", 7);
  tree_.add_device("0000:03:00.2", 0x8086, 0x1533, "vfio-pci", 7);
  tree_.add_device("0000:03:00.3", 0x8086, 0x1533, "", 7);
  kernel_.viable = false;
  const std::string text = fails(-EPERM);
  EXPECT_TRUE(has(text, "group 7 is not viable")) << text;
  EXPECT_TRUE(has(text, "0000:03:00.1 (driver igb)")) << text;
  EXPECT_FALSE(has(text, "0000:03:00.2")) << text;
  EXPECT_FALSE(has(text, "0000:03:00.3")) << text;
}

TEST_F(VfioBusTest, EveryStepMayFail) {
  for (const unsigned long request :
       {VFIO_GROUP_GET_STATUS, VFIO_GROUP_SET_CONTAINER, VFIO_SET_IOMMU, VFIO_IOMMU_GET_INFO,
        VFIO_GROUP_GET_DEVICE_FD, VFIO_DEVICE_GET_INFO, VFIO_DEVICE_GET_REGION_INFO}) {
    kernel_.ioctl_errors = {{request, -EIO}};
    EXPECT_TRUE(has(fails(-EIO), kAddress)) << request;
  }
  kernel_.ioctl_errors = {{VFIO_SET_IOMMU, -EPERM}};
  EXPECT_TRUE(has(fails(-EPERM), "allow_unsafe_interrupts"));
}

TEST_F(VfioBusTest, AFailedResetIsAWarning) {
  kernel_.ioctl_errors = {{VFIO_DEVICE_RESET, -EIO}};
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), 0);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "without a function-level reset"));
}

TEST_F(VfioBusTest, AGoneCardAndAnotherDeviceAreReported) {
  kernel_.set_magic(0xFFFFFFFF);
  std::string text = fails(-ENODEV);
  EXPECT_TRUE(has(text, "all ones")) << text;
  EXPECT_TRUE(has(text, "echo 1 > /sys/bus/pci/devices/0000:03:00.0/remove")) << text;
  EXPECT_TRUE(has(text, "rescan")) << text;
  kernel_.set_magic(0x12345678);
  text = fails(-ENXIO);
  EXPECT_TRUE(has(text, "12345678")) << text;
  kernel_.bar_len = 256;
  EXPECT_TRUE(has(fails(-ENXIO), "BAR0 has 256 bytes"));
}

TEST_F(VfioBusTest, MemoryIsZeroedAlignedAndReachable) {
  ASSERT_EQ(open(), 0);
  std::vector<DmaMemory> all;
  for (const size_t align : {1u, 64u, 256u, 4096u, 65536u, 1u << 20, 1u << 21}) {
    DmaMemory memory;
    ASSERT_EQ(bus_->dma_alloc(5000, align, &memory), 0) << align;
    EXPECT_EQ(memory.len_bytes, 5000u);
    EXPECT_EQ(memory.iova % align, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.va) % align, 0u);
    EXPECT_NE(memory.iova, 0u);
    auto* bytes = static_cast<uint8_t*>(memory.va);
    for (size_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(bytes[i], 0);
      bytes[i] = 0xEE;
    }
    bool covered = false;
    for (const auto& [iova, size] : kernel_.mapped) {
      covered = covered || (iova <= memory.iova && memory.iova + 5000 <= iova + size);
    }
    EXPECT_TRUE(covered);
    for (const DmaMemory& other : all) {
      EXPECT_TRUE(other.iova + 5000 <= memory.iova || memory.iova + 5000 <= other.iova);
    }
    all.push_back(memory);
  }
  bus_->dma_free(all[3]);
  DmaMemory again;
  ASSERT_EQ(bus_->dma_alloc(5000, 4096, &again), 0);
  EXPECT_EQ(static_cast<uint8_t*>(again.va)[17], 0);
  testing::internal::CaptureStderr();
  bus_->dma_free(all[0]);
  bus_->dma_free(all[0]);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "twice"));
  EXPECT_EQ(bus_->dma_alloc(0, 64, &again), -EINVAL);
  EXPECT_EQ(bus_->dma_alloc(1, 3, &again), -EINVAL);
  EXPECT_EQ(bus_->dma_alloc(1, 1u << 22, &again), -EINVAL);
}

TEST_F(VfioBusTest, HugepagesAreTakenFirst) {
  kernel_.hugepages = 1;
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(4096, 4096, &memory), 0);
  ASSERT_EQ(kernel_.mapped.size(), 1u);
  EXPECT_EQ(kernel_.mapped.begin()->second, FakeKernel::kHuge);
  EXPECT_EQ(kernel_.mapped.begin()->first % FakeKernel::kHuge, 0u);
  ASSERT_EQ(bus_->dma_alloc(FakeKernel::kHuge, 4096, &memory), 0);  // none is left: ordinary memory
  EXPECT_EQ(kernel_.mapped.size(), 2u);
}

TEST_F(VfioBusTest, UserMemoryIsMappedAndUnmapped) {
  ASSERT_EQ(open(), 0);
  auto* memory = static_cast<uint8_t*>(std::aligned_alloc(4096, 16 * 4096));
  std::vector<IovaRun> runs;
  ASSERT_EQ(bus_->dma_map(memory, 4 * 4096, &runs), 0);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].va, memory);
  EXPECT_EQ(runs[0].len_bytes, 4u * 4096);
  EXPECT_EQ(kernel_.mapped.at(runs[0].iova), 4u * 4096);
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->dma_map(memory + 3 * 4096, 2 * 4096, &runs), -EEXIST);
  EXPECT_EQ(bus_->dma_map(memory + 8 * 4096 + 1, 4096, &runs), -EINVAL);
  EXPECT_EQ(bus_->dma_map(memory + 8 * 4096, 100, &runs), -EINVAL);
  EXPECT_EQ(bus_->dma_unmap(memory, 4096), -EINVAL);
  EXPECT_EQ(bus_->dma_unmap(memory + 4096, 4096), -EINVAL);
  kernel_.ioctl_errors = {{VFIO_IOMMU_MAP_DMA, -ENOMEM}};
  EXPECT_EQ(bus_->dma_map(memory + 8 * 4096, 4096, &runs), -ENOMEM);
  kernel_.ioctl_errors.clear();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(text, "ulimit -l unlimited")) << text;
  EXPECT_EQ(bus_->dma_unmap(memory, 4 * 4096), 0);
  EXPECT_EQ(bus_->dma_map(memory, 16 * 4096, &runs), 0);  // unmapped with the bus
  bus_.reset();
  std::free(memory);
}

TEST_F(VfioBusTest, VirtualAddressesMayBeBusAddresses) {
  kernel_.last_iova = (uint64_t{1} << 48) - 1;
  const name::Pci card{.address = kAddress, .iova_is_va = true};
  ASSERT_EQ(open(card), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(4096, 4096, &memory), 0);
  EXPECT_EQ(memory.iova, reinterpret_cast<uintptr_t>(memory.va));
  bus_.reset();
  kernel_.last_iova = (uint64_t{1} << 39) - 1;
  ASSERT_EQ(open(card), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->dma_alloc(4096, 4096, &memory), -ERANGE);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "allocated bus addresses"));
}

TEST_F(VfioBusTest, InterruptsAreEnabledAllAtOnce) {
  ASSERT_EQ(open(), 0);
  const int fd = bus_->irq_fd(2);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(kernel_.irq_fds.size(), 4u);
  EXPECT_EQ(kernel_.irq_fds[2], fd);
  EXPECT_EQ(bus_->irq_fd(0), kernel_.irq_fds[0]);
  EXPECT_EQ(std::count(kernel_.calls.begin(), kernel_.calls.end(), "set irqs 4"), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->irq_fd(4), -EINVAL);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "vector 4"));
}

TEST_F(VfioBusTest, ABarThatVanishesReadsAllOnes) {
  ASSERT_EQ(base::catch_bus_errors(), 0);
  ASSERT_EQ(open(), 0);
  Mmio bar = bus_->bar();
  kernel_.take_bar();
  bar.write32(kBarBytes - 4, 1);
  EXPECT_EQ(bar.read32(0), 0xFFFFFFFF);
}

TEST_F(VfioBusTest, LackOfInterruptsIsReported) {
  kernel_.vectors = 0;
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(bus_->irq_fd(0), -ENOTSUP);
}

}  // namespace
}  // namespace rio::pmd::vfio
