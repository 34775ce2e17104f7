// PCI cards from a fake sysfs tree. EAL's bus code scans it and probes our driver. Only the mapping
// of BARs, which needs VFIO or UIO, is replaced: the files resourceN are mapped, and an emulated
// card works on them.

#include <bus_pci_driver.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_dmadev.h>
#include <rte_eal.h>
#include <rte_rawdev.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/eal/eal_memory.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/dma/rte_dma_rio.h"
#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"

namespace rio::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCard = "0000:03:00.0";
constexpr const char* kIvshmem = "0000:04:00.0";
constexpr const char* kForeign = "0000:05:00.0";
constexpr size_t kBarBytes = 256 * 1024;  // three queue pairs fit

fs::path tree;
/// The driver of a device once it is mapped: EAL probes one of UIO only with physical addresses.
rte_pci_kernel_driver map_as = RTE_PCI_KDRV_VFIO;
uint32_t mapped = 0;                     ///< how often EAL, or a driver, has mapped a device
uint16_t command = 0;                    // of the card; EAL has made it bus master
std::function<void(uint16_t)> on_write;  // of the command register

void put(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::string hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

void make_device(const char* address, uint32_t vendor, uint32_t device, unsigned bar,
                 uint32_t subsystem = rio::regs::kPciSubsystem) {
  const fs::path folder = tree / address;
  fs::create_directories(folder);
  put(folder / "vendor", hex(vendor) + "\n");
  put(folder / "device", hex(device) + "\n");
  put(folder / "subsystem_vendor", hex(vendor) + "\n");
  put(folder / "subsystem_device", hex(subsystem) + "\n");
  put(folder / "class", "0x028000\n");
  put(folder / "numa_node", "0\n");
  fs::create_symlink("../../drivers/vfio-pci", folder / "driver");
  std::string lines;
  for (unsigned i = 0; i < 7; ++i) {
    const uint64_t start = 0xA000'0000;
    lines += i == bar ? hex(start) + " " + hex(start + kBarBytes - 1) + " 0x40200\n"
                      : std::string("0x0 0x0 0x0\n");
  }
  put(folder / "resource", lines);
  const fs::path file = folder / ("resource" + std::to_string(bar));
  put(file, "");
  fs::resize_file(file, kBarBytes);
}

void* map_file(const fs::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  void* const va = mmap(nullptr, kBarBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return va;
}

/// EAL's memory, except that the first allocation, the BAR, is memory of a file.
class BarFileMemory final : public pmd::EmuMemory {
 public:
  BarFileMemory(const fs::path& file, std::unique_ptr<pmd::EalMemory> eal)
      : bar_(map_file(file)), eal_(std::move(eal)) {}
  ~BarFileMemory() override { munmap(bar_, kBarBytes); }
  int alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) override {
    if (!given_ && len_bytes <= kBarBytes) {
      given_ = true;
      *out = {.va = bar_, .iova = 0, .len_bytes = len_bytes};
      return 0;
    }
    return eal_->alloc(len_bytes, align_bytes, out);
  }
  void free(const pmd::DmaMemory& memory) override {
    if (memory.va != bar_) {
      eal_->free(memory);
    }
  }
  int map(void* va, size_t len_bytes, std::vector<pmd::IovaRun>* runs) override {
    return eal_->map(va, len_bytes, runs);
  }
  int unmap(void* va, size_t len_bytes) override { return eal_->unmap(va, len_bytes); }
  pmd::EmuView& view() override { return eal_->view(); }

 private:
  void* bar_;
  bool given_ = false;
  std::unique_ptr<pmd::EalMemory> eal_;
};

uint32_t dev_flags(uint16_t port) {
  rte_eth_dev_info info{};
  EXPECT_EQ(rte_eth_dev_info_get(port, &info), 0);
  return *info.dev_flags;
}

/// The card in the slot.
class RawPci : public testing::Test {
 protected:
  void insert_card(const char* address, unsigned bar) {
    std::unique_ptr<pmd::EalMemory> eal;
    ASSERT_EQ(pmd::EalMemory::create("slot", &eal), 0);
    memory_ = std::make_shared<BarFileMemory>(file_of(address, bar), std::move(eal));
    pmd::EmuConfig config;
    config.model.queue_pairs = 2;
    config.model.stepping = pmd::Stepping::kThread;
    ASSERT_EQ(pmd::EmuBus::create(config, memory_, &card_), 0);
  }
  static fs::path file_of(const char* address, unsigned bar) {
    return tree / address / ("resource" + std::to_string(bar));
  }
  static void write_magic(const char* address, unsigned bar, uint32_t value) {
    auto* const word = static_cast<uint32_t*>(map_file(file_of(address, bar)));
    *word = value;
    munmap(word, kBarBytes);
  }
  /// Probes a card, which must be refused. @return the log.
  static std::string refused(const char* address, const char* args) {
    LogCapture log;
    EXPECT_NE(rte_eal_hotplug_add("pci", address, args), 0);
    EXPECT_EQ(rte_rawdev_count(), 0);
    return log.text();
  }

  std::shared_ptr<BarFileMemory> memory_;
  std::unique_ptr<pmd::EmuBus> card_;
};

TEST_F(RawPci, ProbesACard) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, "destid=0x40,tx_ring=64"), 0);
  const uint16_t id = rte_rawdev_get_dev_id(kCard);
  ASSERT_LT(id, RTE_RAWDEV_MAX_DEVS);
  rte_raw_rio_info own{};
  rte_rawdev_info info{};
  info.dev_private = &own;
  ASSERT_EQ(rte_rawdev_info_get(id, &info, sizeof(own)), 0);
  EXPECT_EQ(own.queue_pairs, 2u);
  EXPECT_EQ(own.base_dest_id, 0x40u);
  EXPECT_STREQ(info.driver_name, "raw_rio_pci");
  EXPECT_EQ(pmd::raw_set_faults(id, 1, 0.1), -ENOTSUP);
  EXPECT_EQ(pmd::raw_set_faults(id, 0, 0), 0) << "it has none to switch off";
  EXPECT_EQ(rte_rawdev_selftest(id), 0);
  ASSERT_EQ(rte_rawdev_queue_setup(id, 1, nullptr, 0), 0);
  ASSERT_EQ(rte_rawdev_start(id), 0);
  EXPECT_EQ(rte_rawdev_selftest(id), 0) << "on the other queue pair";
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
  EXPECT_EQ(rte_rawdev_count(), 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, ""), 0) << "again";
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
}

TEST_F(RawPci, ACardIsBusMasterFromItsResetToItsClose) {
  insert_card(kCard, 0);
  auto* const bar = static_cast<uint32_t*>(map_file(file_of(kCard, 0)));
  const uint32_t before = bar[regs::id::gen_ack() / 4];
  std::vector<std::pair<uint16_t, bool>> writes;  // with whether a new reset was answered
  on_write = [&](uint16_t value) {
    const uint32_t answered = bar[regs::id::gen_ack() / 4];
    writes.emplace_back(value, answered != before && answered == bar[regs::id::gen_req() / 4]);
  };
  command = 6;
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, ""), 0);
  const std::vector<std::pair<uint16_t, bool>> expected{{2, false}, {6, true}};
  EXPECT_EQ(writes, expected);
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
  EXPECT_EQ(command, 2);
  on_write = nullptr;
  munmap(bar, kBarBytes);
}

TEST_F(RawPci, NoticesThatTheCardIsGone) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, ""), 0);
  const uint16_t id = rte_rawdev_get_dev_id(kCard);
  ASSERT_EQ(rte_rawdev_queue_setup(id, 0, nullptr, 0), 0);
  card_.reset();
  write_magic(kCard, 0, regs::kAllOnes);
  uint64_t gone = 0;
  EXPECT_EQ(rte_rawdev_get_attr(id, "gone", &gone), 0);
  EXPECT_EQ(gone, 1u);
  LogCapture log;
  EXPECT_NE(rte_rawdev_start(id), 0);
  EXPECT_NE(rte_rawdev_selftest(id), 0);
  char* text = nullptr;
  size_t len = 0;
  FILE* const file = open_memstream(&text, &len);
  EXPECT_EQ(rte_rawdev_dump(id, file), 0);
  fclose(file);
  EXPECT_NE(std::strstr(text, "gone"), nullptr) << text;
  free(text);
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
}

// EAL's interrupt thread says so when VFIO asks for the device.
TEST_F(RawPci, ReadsAllOnesWhenTheKernelAsksForIt) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, ""), 0);
  const uint16_t id = rte_rawdev_get_dev_id(kCard);
  ASSERT_EQ(rte_rawdev_queue_setup(id, 0, nullptr, 0), 0);
  ASSERT_EQ(rte_rawdev_start(id), 0);
  uint64_t gone = 1;
  LogCapture log;
  rte_dev_event_callback_process(kForeign, RTE_DEV_EVENT_REMOVE);
  EXPECT_EQ(rte_rawdev_get_attr(id, "gone", &gone), 0);
  EXPECT_EQ(gone, 0u) << "another device";
  rte_dev_event_callback_process(kCard, RTE_DEV_EVENT_REMOVE);
  EXPECT_EQ(rte_rawdev_get_attr(id, "gone", &gone), 0);
  EXPECT_EQ(gone, 1u);
  EXPECT_NE(log.text().find("the kernel asks for it back"), std::string::npos) << log.text();
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
  rte_dev_event_callback_process(kCard, RTE_DEV_EVENT_REMOVE);  // it was unregistered
}

// After a failed reset there is no card: devices of other classes must notice.
TEST_F(RawPci, OtherClassesNoticeALostCard) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, "destid=0x40"), 0);
  const uint16_t id = rte_rawdev_get_dev_id(kCard);
  const std::string of_it = std::string("card=") + kCard + ",qp=1";
  ASSERT_EQ(rte_vdev_init("dma_rio0", of_it.c_str()), 0);
  const auto dma = static_cast<int16_t>(rte_dma_get_dev_id_by_name("dma_rio0"));
  EXPECT_EQ(rte_dma_rio_dest_id(dma), 0x41u);
  rte_dma_conf conf{};
  conf.nb_vchans = 1;
  ASSERT_EQ(rte_dma_configure(dma, &conf), 0);
  rte_dma_vchan_conf channel{};
  channel.direction = RTE_DMA_DIR_MEM_TO_MEM;
  channel.nb_desc = 64;
  ASSERT_EQ(rte_dma_vchan_setup(dma, 0, &channel), 0);
  card_.reset();
  write_magic(kCard, 0, regs::kAllOnes);
  LogCapture log;
  ASSERT_NE(rte_rawdev_reset(id), 0);
  EXPECT_EQ(rte_dma_vchan_setup(dma, 0, &channel), -ENODEV);
  EXPECT_EQ(rte_dma_start(dma), -ENODEV);
  ASSERT_EQ(rte_vdev_uninit("dma_rio0"), 0);
  EXPECT_NE(rte_vdev_init("dma_rio1", of_it.c_str()), 0);
  EXPECT_NE(log.text().find("dma_rio1: the last reset of card " + std::string(kCard)),
            std::string::npos)
      << log.text();
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
}

// Under UIO a window onto all memory would be one onto all of the machine's.
TEST_F(RawPci, UnderUioNoWindowIsOpenOntoAllMemory) {
  insert_card(kCard, 0);
  for (const bool uio : {false, true}) {
    map_as = uio ? RTE_PCI_KDRV_UIO_GENERIC : RTE_PCI_KDRV_VFIO;
    ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, "destid=0x40"), 0);
    const std::string of_it = std::string("card=") + kCard + ",qp=1";
    ASSERT_EQ(rte_vdev_init("dma_rio0", of_it.c_str()), 0);
    const auto dma = static_cast<int16_t>(rte_dma_get_dev_id_by_name("dma_rio0"));
    rte_dma_info info{};
    ASSERT_EQ(rte_dma_info_get(dma, &info), 0);
    EXPECT_EQ((info.dev_capa & RTE_DMA_CAPA_MEM_TO_MEM) == 0, uio);
    ASSERT_EQ(rte_vdev_uninit("dma_rio0"), 0);
    ASSERT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
  }
  map_as = RTE_PCI_KDRV_VFIO;
}

TEST_F(RawPci, RefusesOtherDevices) {
  write_magic(kCard, 0, 0);
  EXPECT_NE(refused(kCard, "").find("BAR0 holds 0x00000000 where a card holds 0x52494f43"),
            std::string::npos);
  write_magic(kCard, 0, regs::kAllOnes);
  EXPECT_NE(refused(kCard, "").find("does not answer"), std::string::npos);
  write_magic(kCard, 0, 0x434F4952);
  EXPECT_NE(refused(kCard, "").find("wrong byte order"), std::string::npos);
}

TEST_F(RawPci, RefusesArgumentsOfEmulatedCards) {
  EXPECT_NE(refused(kCard, "wire=loop").find("no argument 'wire' for a PCI card"),
            std::string::npos);
  EXPECT_NE(refused(kCard, "tx_ring=7").find("'tx_ring'"), std::string::npos);
}

TEST_F(RawPci, TouchesAnIvshmemOnlyIfItIsToldTo) {
  insert_card(kIvshmem, 2);
  for (const char* const args : {"", "destid=0x40", "class=raw"}) {
    EXPECT_EQ(refused(kIvshmem, args).find("RIO:"), std::string::npos)
        << "not ours: nothing is logged";
  }
  EXPECT_EQ(mapped, 0u);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kIvshmem, "ivshmem=1"), 0);
  EXPECT_EQ(rte_rawdev_selftest(rte_rawdev_get_dev_id(kIvshmem)), 0);
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kIvshmem), 0);
  card_.reset();
  write_magic(kIvshmem, 2, 0x12345678);
  EXPECT_NE(refused(kIvshmem, "ivshmem=1").find("BAR2 holds 0x12345678 where a card holds"),
            std::string::npos);
  EXPECT_EQ(mapped, 0u) << "whatever was mapped is unmapped";
  EXPECT_NE(refused(kCard, "ivshmem=1").find("no argument 'ivshmem'"), std::string::npos);
}

// class=: one card as devices of several classes.

TEST_F(RawPci, IsAPortIfTheClassIsNet) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, "class=net,id=0x40,peers=0x41"), 0);
  EXPECT_EQ(rte_rawdev_count(), 0);
  {
    const Pool pool(2048);
    const Port port(kCard, pool, {.mtu = 1500});
    EXPECT_EQ(port.mac().addr_bytes[5], 0x40);
    EXPECT_EQ(rte_eth_dev_socket_id(port.id()), 0) << "the card's node";
  }
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
  EXPECT_EQ(rte_eth_dev_count_total(), 0);
}

TEST_F(RawPci, IsAPortAndADmaDeviceIfTheClassesSaySo) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, "class=raw:net:dma,id=0x40,qp=0"), 0);
  const int dma = rte_dma_get_dev_id_by_name(kCard);
  ASSERT_GE(dma, 0);
  EXPECT_EQ(rte_dma_rio_dest_id(static_cast<int16_t>(dma)), 0x41u) << "the last queue pair";
  rte_dma_info info{};
  EXPECT_EQ(rte_dma_info_get(static_cast<int16_t>(dma), &info), 0);
  EXPECT_EQ(info.numa_node, 0);
  EXPECT_EQ(rte_rawdev_socket_id(rte_rawdev_get_dev_id(kCard)), 0);
  uint16_t port = 0;
  EXPECT_EQ(rte_eth_dev_get_port_by_name(kCard, &port), 0);
  LogCapture log;
  EXPECT_EQ(rte_vdev_init("net_rio5", (std::string("card=") + kCard).c_str()), -EBUSY);
  EXPECT_NE(log.text().find("no queue pair is free"), std::string::npos) << log.text();
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
  EXPECT_LT(rte_dma_get_dev_id_by_name(kCard), 0);
  EXPECT_EQ(rte_eth_dev_count_total(), 0);
}

TEST_F(RawPci, MakesAllDevicesOrNone) {
  insert_card(kCard, 0);
  EXPECT_NE(refused(kCard, "class=raw:net,qp=9").find("no queue pair 9"), std::string::npos);
  EXPECT_EQ(rte_eth_dev_count_total(), 0);
}

TEST_F(RawPci, RefusesOtherClassesAndTheirKeys) {
  EXPECT_NE(
      refused(kCard, "class=eth").find("bad value 'eth' for argument 'class': allowed is raw"),
      std::string::npos);
  EXPECT_NE(refused(kCard, "class=net:").find("bad value '' for argument 'class'"),
            std::string::npos);
  EXPECT_NE(refused(kCard, "class=dma,peers=1").find("no argument 'peers'"), std::string::npos);
  EXPECT_NE(refused(kCard, "class=raw,class=raw").find("'class' is given twice"),
            std::string::npos);
}

// A port of another device's card is on that card's node, too.
TEST_F(RawPci, PortsOfOtherDevicesKnowTheNode) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, ""), 0);
  {
    const Device net("net_rio0", std::string("card=") + kCard);
    uint16_t port = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &port), 0);
    EXPECT_EQ(rte_eth_dev_socket_id(port), 0);
  }
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
}

TEST_F(RawPci, APortTellsThatItsCardIsGone) {
  insert_card(kCard, 0);
  ASSERT_EQ(rte_eal_hotplug_add("pci", kCard, "class=net"), 0);
  std::atomic<uint32_t> gone{0};
  const auto count = [](uint16_t, rte_eth_event_type, void* seen, void*) {
    ++*static_cast<std::atomic<uint32_t>*>(seen);
    return 0;
  };
  {
    const Pool pool(2048);
    const Port port(kCard, pool, {.mtu = 1500});
    EXPECT_NE(dev_flags(port.id()) & RTE_ETH_DEV_INTR_RMV, 0u);
    ASSERT_EQ(rte_eth_dev_callback_register(port.id(), RTE_ETH_EVENT_INTR_RMV, count, &gone), 0);
    card_.reset();
    void* const bar = map_file(file_of(kCard, 0));
    std::memset(bar, 0xFF, kBarBytes);
    munmap(bar, kBarBytes);
    for (uint32_t i = 0; i < 3000 && gone == 0; ++i) {  // EAL's thread may take long
      usleep(10'000);
    }
    EXPECT_EQ(gone, 1u);
    ASSERT_EQ(rte_eth_dev_callback_unregister(port.id(), RTE_ETH_EVENT_INTR_RMV, count, &gone), 0);
  }
  EXPECT_EQ(rte_eal_hotplug_remove("pci", kCard), 0);
}

TEST_F(RawPci, LeavesOtherDevicesAlone) {
  EXPECT_EQ(refused(kForeign, "").find("RAW_RIO"), std::string::npos);
}

}  // namespace
}  // namespace rio::test

// Replace functions of librte_bus_pci, which calls them by name.
extern "C" int rte_pci_map_device(rte_pci_device* device) {
  using namespace rio::test;
  device->kdrv = map_as;
  ++mapped;
  for (unsigned bar = 0; bar < PCI_MAX_RESOURCE; ++bar) {
    const fs::path file = tree / device->name / ("resource" + std::to_string(bar));
    if (fs::exists(file)) {
      device->mem_resource[bar].addr = map_file(file);
    }
  }
  return 0;
}

extern "C" int rte_pci_read_config(const rte_pci_device* /*device*/, void* to, size_t len_bytes,
                                   off_t offset_bytes) {
  const uint16_t word = offset_bytes == 4 ? rio::test::command : 0;  // no capabilities
  std::memcpy(to, &word, sizeof(word));
  return static_cast<int>(len_bytes);
}

extern "C" int rte_pci_write_config(const rte_pci_device* /*device*/, const void* from,
                                    size_t len_bytes, off_t offset_bytes) {
  uint16_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  if (offset_bytes == 4 && rio::test::on_write) {
    rio::test::on_write(value);
  }
  rio::test::command = value;
  return static_cast<int>(len_bytes);
}

extern "C" void rte_pci_unmap_device(rte_pci_device* device) {
  --rio::test::mapped;
  for (rte_mem_resource& bar : device->mem_resource) {
    if (bar.addr != nullptr) {
      munmap(bar.addr, rio::test::kBarBytes);
      bar.addr = nullptr;
    }
  }
}

int main(int argc, char** argv) {
  using namespace rio::test;
  const auto make_tree = [] {
    tree = fs::temp_directory_path() / own_prefix("pci");
    make_device(kCard, rio::regs::kPciVendor, rio::regs::kPciDevice, 0);
    make_device(kIvshmem, rio::regs::kPciIvshmemVendor, rio::regs::kPciIvshmemDevice, 2);
    make_device(kForeign, rio::regs::kPciVendor, rio::regs::kPciDevice, 0, 0x0007);
    setenv("SYSFS_PCI_DEVICES", tree.c_str(), 1);
  };
  // No device is probed at the start: only a missing one is allowed.
  const int rc = run_tests_in_eal(
      argc, argv, "pci", {"-a", "0000:ff:1f.0", "-d", "librte_net_rio.so", "--no-telemetry"},
      make_tree);
  fs::remove_all(tree);
  return rc;
}
