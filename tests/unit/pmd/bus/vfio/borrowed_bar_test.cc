// A card that another program has open, on a kernel that reserves its BAR for that program.
#include "pmd/bus/vfio/inspect.hpp"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include <cerrno>

#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kAddress = "0000:03:00.0";
constexpr int kOwner = 812;
constexpr int kOwnersFd = 9;
constexpr int kOtherFd = 8;  // of the same program, for another device
constexpr uint32_t kBarRegister = 0xE0000000;

/// Maps no BAR through sysfs, but copies descriptors of programs, like a kernel with
/// CONFIG_IO_STRICT_DEVMEM.
class StrictKernel : public FakeKernel {
 public:
  explicit StrictKernel(const FakeTree& tree) : FakeKernel(tree.paths), bar_(kBarBytes / 4) {
    bar_[0] = regs::kMagic;
    bar_[4] = 0x00010203;  // regs: ID.HW_VERSION
  }

  int mmap(void* hint, size_t len_bytes, int prot, int flags, int fd, uint64_t offset_bytes,
           void** out) override {
    if (fd != kCopy + kOwnersFd) {
      return fd >= 0 ? -EINVAL
                     : FakeKernel::mmap(hint, len_bytes, prot, flags, fd, offset_bytes, out);
    }
    EXPECT_EQ(offset_bytes, 0U);
    *out = bar_.data();
    ++mapped_bars;
    return 0;
  }
  void munmap(void* va, size_t len_bytes) override {
    if (va == bar_.data()) {
      --mapped_bars;
    } else {
      FakeKernel::munmap(va, len_bytes);
    }
  }
  int copy_fd(int pid, int fd) override {
    if (pid != kOwner || !may_trace) {
      return -EPERM;
    }
    opened.insert(kCopy + fd);
    return kCopy + fd;
  }
  using FakeKernel::ioctl;
  int ioctl(int fd, unsigned long request, void* arg) override {
    if (fd < kCopy || request != VFIO_DEVICE_GET_REGION_INFO) {
      return FakeKernel::ioctl(fd, request, arg);
    }
    auto* region = static_cast<vfio_region_info*>(arg);
    region->size = region->index == VFIO_PCI_CONFIG_REGION_INDEX ? 4096 : bar_len;
    region->offset = static_cast<uint64_t>(region->index) << 40;
    return 0;
  }
  ssize_t read(int fd, void* to, size_t len_bytes, uint64_t offset_bytes) override {
    if (fd < kCopy) {
      return FakeKernel::read(fd, to, len_bytes, offset_bytes);
    }
    EXPECT_EQ(offset_bytes, kConfigOffset + PCI_BASE_ADDRESS_0);
    std::vector<uint32_t> bars(len_bytes / 4);
    bars[0] = fd == kCopy + kOwnersFd ? kBarRegister : kBarRegister + kBarBytes;
    std::memcpy(to, bars.data(), len_bytes);
    return static_cast<ssize_t>(len_bytes);
  }

  int mapped_bars = 0;
  bool may_trace = true;

 private:
  static constexpr int kCopy = 200000;
  std::vector<uint32_t> bar_;
};

class BorrowedBarTest : public testing::Test {
 protected:
  BorrowedBarTest() {
    tree_.add_device(kAddress, 0x10EE, 0x7210, "vfio-pci", 7);
    std::string config(256, '\0');
    std::memcpy(config.data() + PCI_BASE_ADDRESS_0, &kBarRegister, sizeof(kBarRegister));
    FakeTree::write(tree_.device(kAddress) + "/config", config);
    hold(1, 3, "/dev/null");
  }

  void hold(int pid, int fd, const std::string& file) {
    const std::string folder = tree_.paths.proc + "/" + std::to_string(pid) + "/fd";
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink(file, folder + "/" + std::to_string(fd));
  }
  void hold_card() {
    hold(kOwner, kOtherFd, "anon_inode:[vfio-device]");
    hold(kOwner, kOwnersFd, "anon_inode:[vfio-device]");
  }
  PciCard card() {
    PciCard card;
    EXPECT_EQ(find_card(tree_.paths, kAddress, &card), 0);
    return card;
  }

  FakeTree tree_;
  StrictKernel kernel_{tree_};
};

TEST_F(BorrowedBarTest, ComesFromTheProgramThatHasTheCard) {
  hold_card();
  KernelMapping bar;
  ASSERT_EQ(borrow_bar(tree_.paths, kernel_, card(), kBarBytes, PROT_READ, &bar), 0);
  EXPECT_EQ(*static_cast<uint32_t*>(bar.va()), regs::kMagic);
  EXPECT_TRUE(kernel_.opened.empty()) << "the mapping needs no file";
  EXPECT_EQ(kernel_.mapped_bars, 1);
}

TEST_F(BorrowedBarTest, FailsIfNoProgramHasTheCard) {
  KernelMapping bar;
  EXPECT_EQ(borrow_bar(tree_.paths, kernel_, card(), kBarBytes, PROT_READ, &bar), -ENOENT);
  hold(kOwner, kOtherFd, "anon_inode:[vfio-device]");
  EXPECT_EQ(borrow_bar(tree_.paths, kernel_, card(), kBarBytes, PROT_READ, &bar), -ENOENT);
  EXPECT_TRUE(kernel_.opened.empty());
  EXPECT_EQ(kernel_.mapped_bars, 0);
}

TEST_F(BorrowedBarTest, NeedsTheRightToTraceTheProgram) {
  hold_card();
  kernel_.may_trace = false;
  KernelMapping bar;
  EXPECT_EQ(borrow_bar(tree_.paths, kernel_, card(), kBarBytes, PROT_READ, &bar), -ENOENT);
}

TEST_F(BorrowedBarTest, IsNotShorterThanRequested) {
  hold_card();
  kernel_.bar_len = 4096;
  KernelMapping bar;
  EXPECT_EQ(borrow_bar(tree_.paths, kernel_, card(), kBarBytes, PROT_READ, &bar), -EINVAL);
  EXPECT_TRUE(kernel_.opened.empty());
}

TEST_F(BorrowedBarTest, IdentityIsReadWhileTheProgramRuns) {
  hold_card();
  CardId id;
  ASSERT_EQ(read_card_id(tree_.paths, card(), &id, kernel_), 0);
  EXPECT_TRUE(id.is_card());
  EXPECT_EQ(id.hw_version, 0x00010203U);
  EXPECT_EQ(kernel_.mapped_bars, 0);
}

TEST_F(BorrowedBarTest, BusInspectsWhileTheProgramRuns) {
  hold_card();
  std::unique_ptr<Bus> bus;
  ASSERT_EQ(map_bar(kAddress, tree_.paths, &bus, kernel_), 0);
  EXPECT_EQ(bus->bar().read32(0), regs::kMagic);
  bus.reset();
  EXPECT_EQ(kernel_.mapped_bars, 0);
  EXPECT_TRUE(kernel_.opened.empty());
}

TEST_F(BorrowedBarTest, BusSaysWhyItCannotInspect) {
  hold_card();
  kernel_.may_trace = false;
  std::unique_ptr<Bus> bus;
  testing::internal::CaptureStderr();
  EXPECT_EQ(map_bar(kAddress, tree_.paths, &bus, kernel_), -EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a program has it open"),
            std::string::npos);
}

}  // namespace
}  // namespace rio::pmd::vfio
