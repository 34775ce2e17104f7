#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/range_allocator.hpp"
#include "pmd/bus/vfio/vfio_bus.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kAddress = "0000:03:00.0";
constexpr size_t kHuge = FakeKernel::kHuge;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class UioTest : public testing::Test {
 protected:
  UioTest() {
    tree_.add_device(kAddress, 0x10EE, 0x7210, "uio_pci_generic", -1);
    FakeTree::write(tree_.device(kAddress) + "/reset", "");
    kernel_.hugepages = 16;
  }
  int open() { return open_vfio_bus({kAddress}, tree_.paths, &bus_, kernel_); }

  FakeTree tree_;
  FakeKernel kernel_{tree_.paths};
  std::unique_ptr<Bus> bus_;
};

TEST_F(UioTest, OpensAndResets) {
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(bus_->bar().len_bytes(), kBarBytes);
  Mmio bar = bus_->bar();
  bar.write32(0x1000, 0xABCD);
  std::ifstream resource(tree_.device(kAddress) + "/resource0", std::ios::binary);
  resource.seekg(0x1000);
  uint32_t word = 0;
  resource.read(reinterpret_cast<char*>(&word), sizeof(word));
  EXPECT_EQ(word, 0xABCDu);
  const std::vector<std::string> expected{"read command", "write command 2",   // opened
                                          "read command", "write command 2"};  // reset
  EXPECT_EQ(kernel_.calls, expected);
  std::ifstream reset(tree_.device(kAddress) + "/reset");
  EXPECT_EQ(reset.get(), '1');
  EXPECT_EQ(bus_->irq_fd(0), -ENOTSUP);
}

TEST_F(UioTest, MemoryHasPhysicalAddresses) {
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(4096, 4096, &memory), 0);
  EXPECT_EQ(memory.iova, kernel_.physical(reinterpret_cast<uintptr_t>(memory.va)));
  ASSERT_EQ(bus_->dma_alloc(3 * kHuge, 4096, &memory), 0);
  EXPECT_EQ(memory.iova, kernel_.physical(reinterpret_cast<uintptr_t>(memory.va)));
}

/// Pages as the kernel hands them out after a boot: the highest first.
TEST_F(UioTest, PagesInDisorderAreSorted) {
  kernel_.scattered = true;
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(3 * kHuge, kHuge, &memory), 0);
  const auto va = reinterpret_cast<uintptr_t>(memory.va);
  EXPECT_EQ(va % kHuge, 0u);
  for (uint64_t at = 0; at < 3 * kHuge; at += kHuge) {
    EXPECT_EQ(kernel_.physical(va + at), memory.iova + at);
  }
  EXPECT_EQ(kernel_.hugepages, 13u) << "no more pages than requested";
  auto* const bytes = static_cast<uint8_t*>(memory.va);
  EXPECT_EQ(bytes[0] | bytes[3 * kHuge - 1], 0);
  bytes[3 * kHuge - 1] = 1;
}

/// No two of the first three are neighbours; four of the first twelve are.
TEST_F(UioTest, NeighboursAreSearchedAmongMorePages) {
  kernel_.shuffled = true;
  FakeTree::write(tree_.paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
                  "16\n");
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(3 * kHuge, kHuge, &memory), 0);
  const auto va = reinterpret_cast<uintptr_t>(memory.va);
  for (uint64_t at = 0; at < 3 * kHuge; at += kHuge) {
    EXPECT_EQ(kernel_.physical(va + at), memory.iova + at);
  }
  EXPECT_EQ(kernel_.dropped, 9u);
  EXPECT_EQ(kernel_.hugepages, 13u) << "the others were given back";
  for (const std::string& call : kernel_.calls) {
    EXPECT_FALSE(has(call, "BAD")) << call;
  }
}

TEST_F(UioTest, WithoutAFileSystemOfHugepagesTheRemedyIsNamed) {
  FakeTree::write(tree_.paths.proc + "/mounts", "none /nowhere hugetlbfs rw,pagesize=1024M 0 0\n");
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->dma_alloc(4096, 4096, &memory), -ENOENT);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "mount -t hugetlbfs -o pagesize=2M"));
}

TEST_F(UioTest, PagesWithoutNeighboursFail) {
  kernel_.scattered = true;
  kernel_.apart = true;
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(kHuge, 4096, &memory), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->dma_alloc(kHuge + 1, 4096, &memory), -ENOMEM);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(text, "side by side")) << text;
}

TEST_F(UioTest, TooFewHugepagesAreCounted) {
  kernel_.hugepages = 1;
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->dma_alloc(3 * kHuge, 4096, &memory), -ENOMEM);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(text, "3 hugepages of 2 MiB")) << text;
  EXPECT_TRUE(has(text, "0 are free")) << text;
  EXPECT_TRUE(has(text, "echo 72 > /sys/kernel/mm/hugepages")) << text;
}

TEST_F(UioTest, UserMemoryHasToBeHugepages) {
  ASSERT_EQ(open(), 0);
  void* ordinary = std::aligned_alloc(4096, 4096);
  std::vector<IovaRun> runs;
  EXPECT_EQ(bus_->dma_map(ordinary, 4096, &runs), -ENOTSUP);
  std::free(ordinary);

  kernel_.scattered = true;
  void* huge = nullptr;
  ASSERT_EQ(kernel_.mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0, &huge),
            0);
  auto* start = static_cast<uint8_t*>(huge) + kHuge - 4096;
  ASSERT_EQ(bus_->dma_map(start, 2 * 4096, &runs), 0);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].len_bytes, 4096u);
  EXPECT_EQ(runs[1].iova, kernel_.physical(reinterpret_cast<uintptr_t>(start) + 4096));
  EXPECT_EQ(bus_->dma_unmap(start, 2 * 4096), 0);
  kernel_.scattered = false;
  ASSERT_EQ(bus_->dma_map(start, 2 * 4096, &runs), 0);
  EXPECT_EQ(runs.size(), 1u);
}

TEST_F(UioTest, HiddenPhysicalAddressesAreReported) {
  kernel_.hide_physical = true;
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  testing::internal::CaptureStderr();
  EXPECT_EQ(bus_->dma_alloc(4096, 4096, &memory), -EPERM);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "sudo"));
}

TEST_F(UioTest, ErrorsNameTheRemedy) {
  std::filesystem::remove_all(tree_.device(kAddress) + "/uio");
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), -ENODEV);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "driverctl set-override"));
  std::filesystem::create_directories(tree_.device(kAddress) + "/uio/uio3");
  kernel_.open_errors[tree_.paths.dev + "/uio3"] = -EACCES;
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), -EACCES);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "sudo"));
  kernel_.open_errors.clear();
  tree_.set_word(kAddress, 0, 0xFFFFFFFF);
  testing::internal::CaptureStderr();
  EXPECT_EQ(open(), -ENODEV);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "all ones"));
}

TEST_F(UioTest, OpensWithoutAResetFile) {
  std::filesystem::remove(tree_.device(kAddress) + "/reset");
  testing::internal::CaptureStderr();
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a device without a reset is no warning";
}

/// Hugepages and physical addresses of the running kernel, with a fake card.
TEST(UioOnThisMachine, HugepagesHavePhysicalAddresses) {
  FakeTree tree;
  tree.add_device(kAddress, 0x10EE, 0x7210, "uio_pci_generic", -1);
  tree.paths.proc = "/proc";
  std::unique_ptr<Bus> bus;
  ASSERT_EQ(open_vfio_bus({kAddress}, tree.paths, &bus), 0);
  DmaMemory memory;
  testing::internal::CaptureStderr();
  const int rc = bus->dma_alloc(8192, 4096, &memory);
  const std::string text = testing::internal::GetCapturedStderr();
  if (rc == -ENOMEM || rc == -EPERM) {
    GTEST_SKIP() << text;
  }
  ASSERT_EQ(rc, 0) << text;
  EXPECT_NE(memory.iova, 0u);
  EXPECT_EQ(memory.iova % kHuge, reinterpret_cast<uintptr_t>(memory.va) % kHuge);
  void* ordinary = std::aligned_alloc(4096, 4096);
  std::memset(ordinary, 1, 4096);
  std::vector<IovaRun> runs;
  EXPECT_EQ(bus->dma_map(ordinary, 4096, &runs), -ENOTSUP);
  std::free(ordinary);
  bus->dma_free(memory);
}

TEST(Smaps, YieldPageSizes) {
  const std::string text =
      "1000-3000 rw-p 00000000 00:00 0 [heap]\nSize: 8 kB\nKernelPageSize:        4 kB\n"
      "200000-400000 rw-s 00000000 00:0f 12 /dev/hugepages/x\nKernelPageSize:     2048 kB\n";
  EXPECT_EQ(page_bytes_at(text, 0x1000), 4096u);
  EXPECT_EQ(page_bytes_at(text, 0x2FFF), 4096u);
  EXPECT_EQ(page_bytes_at(text, 0x3000), 0u);
  EXPECT_EQ(page_bytes_at(text, 0x300000), 2u << 20);
  EXPECT_EQ(page_bytes_at("", 0x300000), 0u);
}

TEST(RangeAllocator, FirstFitAlignedAndJoined) {
  RangeAllocator ranges;
  ranges.add(100, 1000);
  uint64_t a = 0;
  uint64_t b = 0;
  ASSERT_TRUE(ranges.allocate(100, 256, &a));
  EXPECT_EQ(a, 256u);
  ASSERT_TRUE(ranges.allocate(100, 1, &b));
  EXPECT_EQ(b, 100u);
  EXPECT_FALSE(ranges.allocate(1000, 1, &b));
  ranges.free(a, 100);
  ranges.free(100, 100);
  ASSERT_TRUE(ranges.allocate(1000, 1, &a));
  EXPECT_EQ(a, 100u);
  EXPECT_FALSE(ranges.allocate(1, 1, &a));
}

TEST(RangeAllocator, HandlesTheEndOfTheNumbers) {
  RangeAllocator ranges;
  ranges.add(UINT64_MAX - 4095, 4096);
  uint64_t a = 0;
  EXPECT_FALSE(ranges.allocate(4096, 4096, &a));
  EXPECT_TRUE(ranges.allocate(2048, 4096, &a));
  EXPECT_FALSE(ranges.allocate(1, uint64_t{1} << 63, &a));
}

}  // namespace
}  // namespace rio::pmd::vfio
