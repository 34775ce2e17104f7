/// @file
/// A sysfs tree in a temporary folder, for the tests of pmd/bus/vfio.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/formatted.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

inline constexpr size_t kBarBytes = 0x200000;

/// A temporary folder with sys, dev and proc in it.
class FakeTree {
 public:
  FakeTree() {
    char name[] = "/tmp/riopmd-vfio-XXXXXX";
    root = mkdtemp(name);
    paths.sysfs = root + "/sys";
    paths.dev = root + "/dev";
    paths.proc = root + "/proc";
    std::filesystem::create_directories(paths.sysfs + "/bus/pci/devices");
    std::filesystem::create_directories(paths.sysfs + "/bus/pci/drivers");
    std::filesystem::create_directories(paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB");
    std::filesystem::create_directories(paths.dev + "/vfio");
    std::filesystem::create_directories(paths.proc + "/self");
    std::filesystem::create_directories(huge());
    write(paths.proc + "/mounts", "none " + huge() + " hugetlbfs rw,pagesize=2M 0 0\n");
    write(paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
    write(paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  std::string huge() const { return root + "/huge"; }  // where hugepages are mounted

  std::string device(const std::string& address) const {
    return paths.sysfs + "/bus/pci/devices/" + address;
  }

  /// Adds a device with a BAR0 (or BAR2) of kBarBytes, whose words are in a file. Its subsystem ids
  /// are a card's.
  void add_device(const std::string& address, uint16_t vendor, uint16_t id,
                  const std::string& driver, int group, int bar = 0, int numa = 1) {
    const std::string folder = device(address);
    std::filesystem::create_directories(folder);
    set_ids(address, "", vendor, id);
    set_ids(address, "subsystem_", 0x10EE, 0x5249);
    write(folder + "/class", "0x028000\n");
    write(folder + "/irq", "0\n");
    write(folder + "/numa_node", std::to_string(numa) + "\n");
    std::string resource;
    for (int i = 0; i < 7; ++i) {
      resource += i == bar ? base::formatted("0x%016lx 0x%016lx 0x%016lx\n", 0xE0000000ul,
                                             0xE0000000ul + kBarBytes - 1, 0x40200ul)
                           : "0x0 0x0 0x0\n";
    }
    write(folder + "/resource", resource);
    std::string config(256, '\0');
    config[0] = static_cast<char>(vendor & 0xFF);
    config[1] = static_cast<char>(vendor >> 8);
    config[2] = static_cast<char>(id & 0xFF);
    config[3] = static_cast<char>(id >> 8);
    write(folder + "/config", config);
    if (!driver.empty()) {
      bind(address, driver);
    }
    if (group >= 0) {
      const std::string devices =
          paths.sysfs + "/kernel/iommu_groups/" + std::to_string(group) + "/devices";
      std::filesystem::create_directories(devices);
      std::filesystem::create_directory_symlink(folder, devices + "/" + address);
      std::filesystem::create_directory_symlink(
          "../../../../kernel/iommu_groups/" + std::to_string(group), folder + "/iommu_group");
    }
    set_word(address, bar, regs::kMagic);
  }

  void set_ids(const std::string& address, const std::string& of, uint16_t vendor, uint16_t id) {
    write(device(address) + "/" + of + "vendor", base::formatted("0x%04x\n", vendor));
    write(device(address) + "/" + of + "device", base::formatted("0x%04x\n", id));
  }

  /// Gives a device a file of its own, /dev/vfio/devices/vfioN.
  void add_cdev(const std::string& address, int number) const {
    std::filesystem::create_directories(device(address) + "/vfio-dev/vfio" +
                                        std::to_string(number));
  }

  void bind(const std::string& address, const std::string& driver) {
    const std::string folder = paths.sysfs + "/bus/pci/drivers/" + driver;
    std::filesystem::create_directories(folder);
    std::filesystem::remove(device(address) + "/driver");
    std::filesystem::create_directory_symlink("../../drivers/" + driver,
                                              device(address) + "/driver");
    if (driver.rfind("uio", 0) == 0 || driver == "igb_uio") {
      std::filesystem::create_directories(device(address) + "/uio/uio3");
      write(paths.dev + "/uio3", "");
    }
  }

  /// Sets the first word of a BAR, which is a file that can be mapped.
  void set_word(const std::string& address, int bar, uint32_t word) {
    const std::string path = device(address) + "/resource" + std::to_string(bar);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&word), sizeof(word));
    file.close();
    std::filesystem::resize_file(path, kBarBytes);
  }

  std::string root;
  PciPaths paths;
};

}  // namespace rio::pmd::vfio
