#include "pmd/bus/vfio/remedy.hpp"

#include <algorithm>
#include <filesystem>

#include "pmd/bus/vfio/backend.hpp"

namespace rio::pmd::vfio {

std::string bind_command(const std::string& address, const std::string& driver) {
  return "driverctl set-override " + address + " " + driver + " (or: modprobe " + driver +
         "; echo " + driver + " > /sys/bus/pci/devices/" + address + "/driver_override; echo " +
         address + " > /sys/bus/pci/devices/" + address + "/driver/unbind; echo " + address +
         " > /sys/bus/pci/drivers_probe)";
}

std::string rescan_command(const std::string& address) {
  return "echo 1 > /sys/bus/pci/devices/" + address +
         "/remove; echo 1 > /sys/bus/pci/rescan; reboot if that does not help";
}

std::vector<Neighbour> foreign_neighbours(const PciPaths& paths, Kernel& kernel,
                                          const PciCard& card) {
  const std::string folder =
      paths.sysfs + "/kernel/iommu_groups/" + std::to_string(card.iommu_group) + "/devices";
  std::vector<Neighbour> list;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string address = it->path().filename().string();
    std::string driver;
    if (address == card.address ||
        link_name(kernel, paths.sysfs + "/bus/pci/devices/" + address + "/driver", &driver) != 0 ||
        driver == kVfioDriver || driver == "pci-stub" || driver == "pcieport") {
      continue;  // these drivers do not prevent VFIO
    }
    list.push_back({address, driver});
  }
  std::sort(list.begin(), list.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.address < b.address; });
  return list;
}

std::string group_neighbours(const PciPaths& paths, Kernel& kernel, const PciCard& card) {
  std::string list;
  for (const Neighbour& one : foreign_neighbours(paths, kernel, card)) {
    list.append(list.empty() ? "" : ", ");
    list.append(one.address).append(" (driver ").append(one.driver).append(")");
  }
  return list;
}

}  // namespace rio::pmd::vfio
