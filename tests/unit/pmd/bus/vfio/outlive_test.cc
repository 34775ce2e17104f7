// Hugepages of a card under UIO outlive a killed process until the next one has silenced the card.
// Nothing of a card lives on in children.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "base/folder.hpp"
#include "pmd/bus/vfio/huge_files.hpp"
#include "pmd/bus/vfio/vfio_bus.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kAddress = "0000:03:00.0";
constexpr size_t kHuge = FakeKernel::kHuge;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Runs a function in a child, which then kills itself: nothing of it is destroyed. @return whether
/// the function returned true.
bool killed_after(const std::function<bool()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    if (run()) {
      raise(SIGKILL);
    }
    _exit(1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

class OutliveTest : public testing::Test {
 protected:
  void insert_card(const char* driver, int group) {
    tree_.add_device(kAddress, 0x10EE, 0x7210, driver, group);
    kernel_.hugepages = 16;
  }
  int open() { return open_vfio_bus({kAddress}, tree_.paths, &bus_, kernel_); }
  /// Opens the card in a process that is killed while it has memory of these sizes.
  bool use_and_die(const std::vector<size_t>& sizes) {
    return killed_after([&] {
      bool good = open() == 0;
      for (const size_t size : sizes) {
        DmaMemory memory;
        good = good && bus_->dma_alloc(size, 4096, &memory) == 0;
      }
      return good;
    });
  }
  std::vector<std::string> files() { return base::names_in(tree_.huge()); }

  FakeTree tree_;
  FakeKernel kernel_{tree_.paths};
  std::unique_ptr<Bus> bus_;
};

using Names = std::vector<std::string>;

TEST_F(OutliveTest, HugepagesUnderUioStayUntilTheNextProcessHasSilencedTheCard) {
  insert_card("uio_pci_generic", -1);
  FakeTree::write(tree_.huge() + "/riopmd-0000:03:00.1-0", "another card's");
  FakeTree::write(tree_.huge() + "/rtemap_0", "EAL's");
  ASSERT_TRUE(use_and_die({4096, 3 * kHuge}));
  const Names left{"riopmd-0000:03:00.0-0", "riopmd-0000:03:00.0-1", "riopmd-0000:03:00.1-0",
                   "rtemap_0"};
  EXPECT_EQ(files(), left);
  ASSERT_EQ(open(), 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(4096, 4096, &memory), 0);
  EXPECT_EQ(files().size(), left.size() + 1) << "the card may still write to them";
  ASSERT_EQ(bus_->start_dma(), 0);
  EXPECT_EQ(files(), (Names{"riopmd-0000:03:00.0-2", "riopmd-0000:03:00.1-0", "rtemap_0"}));
  bus_->dma_free(memory);
  bus_.reset();
  EXPECT_EQ(files(), (Names{"riopmd-0000:03:00.1-0", "rtemap_0"}));
}

TEST_F(OutliveTest, MemoryThatTheCardMayStillUseIsLeftAndSaid) {
  insert_card("uio_pci_generic", -1);
  ASSERT_EQ(open(), 0);
  DmaMemory kept;
  DmaMemory freed;
  ASSERT_EQ(bus_->dma_alloc(kHuge, 4096, &freed), 0);
  ASSERT_EQ(bus_->dma_alloc(kHuge, 4096, &kept), 0);
  bus_->dma_free(freed);
  testing::internal::CaptureStderr();
  bus_.reset();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(text, "the card may still use memory in " + tree_.huge())) << text;
  EXPECT_EQ(files(), (Names{"riopmd-0000:03:00.0-1"}));
}

TEST_F(OutliveTest, ASearchThatFailsLeavesNoFile) {
  insert_card("uio_pci_generic", -1);
  kernel_.apart = true;
  ASSERT_EQ(open(), 0);
  testing::internal::CaptureStderr();
  DmaMemory memory;
  EXPECT_EQ(bus_->dma_alloc(2 * kHuge, 4096, &memory), -ENOMEM);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(files(), Names{});
}

TEST_F(OutliveTest, UnderVfioNoFileIsNeeded) {
  insert_card("vfio-pci", 7);
  ASSERT_TRUE(use_and_die({4096, 3 * kHuge}));
  EXPECT_EQ(files(), Names{});
}

TEST_F(OutliveTest, OneProcessAtATimeHasACardUnderUio) {
  insert_card("uio_pci_generic", -1);
  ASSERT_EQ(open(), 0);
  std::unique_ptr<Bus> second;
  testing::internal::CaptureStderr();
  EXPECT_EQ(open_vfio_bus({kAddress}, tree_.paths, &second, kernel_), -EBUSY);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "fuser -v " + tree_.paths.dev + "/uio3"));
  bus_.reset();
  EXPECT_EQ(open_vfio_bus({kAddress}, tree_.paths, &second, kernel_), 0);
}

/// The lock of a file lives as long as a descriptor of any process that has come from its owner.
TEST_F(OutliveTest, AChildThatLivesOnDoesNotKeepTheCardOfItsKilledParent) {
  insert_card("uio_pci_generic", -1);
  int until[2];
  int told[2];
  ASSERT_EQ(pipe(until) | pipe(told), 0);
  ASSERT_TRUE(killed_after([&] {
    DmaMemory memory;
    if (open() != 0 || bus_->dma_alloc(4096, 4096, &memory) != 0) {
      return false;
    }
    std::memset(memory.va, 0x55, 4096);
    bus_->bar().write32(0x1000, 0x1234);
    char result = 0;
    if (fork() == 0) {
      close(until[1]);
      const bool good =
          bus_->bar().read32(0x1000) == regs::kAllOnes && static_cast<uint8_t*>(memory.va)[0] == 0;
      bus_->bar().write32(0x1000, 0x5678);
      std::memset(memory.va, 0x66, 4096);
      result = good ? 'y' : 'n';
      bool waited = write(told[1], &result, 1) == 1;
      waited = read(until[0], &result, 1) == 0 && waited;
      _exit(waited ? 0 : 1);
    }
    return read(told[0], &result, 1) == 1 && result == 'y' &&
           bus_->bar().read32(0x1000) == 0x1234 && static_cast<uint8_t*>(memory.va)[0] == 0x55;
  }));
  EXPECT_EQ(open(), 0);
  close(until[1]);  // ends the child
  for (const int fd : {until[0], told[0], told[1]}) {
    close(fd);
  }
}

TEST_F(OutliveTest, AChildHasNoDescriptorOfItsParentsDevice) {
  insert_card("vfio-pci", 7);
  ASSERT_EQ(open(), 0);
  const int irq = bus_->irq_fd(0);
  ASSERT_GE(irq, 0);
  DmaMemory memory;
  ASSERT_EQ(bus_->dma_alloc(4096, 4096, &memory), 0);
  std::memset(memory.va, 0x55, 4096);
  ASSERT_EQ(eventfd_write(irq, 1), 0);
  EXPECT_TRUE(killed_after([&] {
    eventfd_t none = 0;
    return eventfd_read(irq, &none) != 0 && errno == EAGAIN && fcntl(irq, F_GETFD) == FD_CLOEXEC &&
           static_cast<uint8_t*>(memory.va)[0] == 0;
  }));
  eventfd_t count = 0;
  EXPECT_EQ(eventfd_read(irq, &count), 0) << "the parent's interrupt is still there";
  EXPECT_EQ(static_cast<uint8_t*>(memory.va)[0], 0x55);
}

/// Hugepages of the running kernel, with a fake card whose address no other run of this test has.
TEST(OutliveOnThisMachine, AKilledProcessLeavesItsHugepages) {
  char address[16];
  std::snprintf(address, sizeof(address), "%04x:03:00.0", static_cast<unsigned>(getpid()) & 0xFFFF);
  FakeTree tree;
  tree.add_device(address, 0x10EE, 0x7210, "uio_pci_generic", -1);
  tree.paths.proc = "/proc";
  std::unique_ptr<Bus> bus;
  DmaMemory memory;
  if (!killed_after([&] {
        return open_vfio_bus({address}, tree.paths, &bus) == 0 &&
               bus->dma_alloc(8192, 4096, &memory) == 0;
      })) {
    GTEST_SKIP() << "no hugepages, or no right to them: see the log";
  }
  PciPaths machine;
  KernelFd fd;
  std::string path;
  ASSERT_EQ(HugeFiles(real_kernel(), machine, address).create(kHuge, &path, &fd), 0);
  EXPECT_TRUE(path.ends_with("-1")) << path << ": the killed process has left its own";
  ASSERT_EQ(open_vfio_bus({address}, tree.paths, &bus), 0);
  ASSERT_EQ(bus->start_dma(), 0);
  fd = {};
  ASSERT_EQ(HugeFiles(real_kernel(), machine, address).create(kHuge, &path, &fd), 0);
  EXPECT_TRUE(path.ends_with("-0")) << path;
  EXPECT_EQ(real_kernel().remove_file(path), 0);
}

}  // namespace
}  // namespace rio::pmd::vfio
