#include "pmd/bus/vfio/remedy.hpp"

#include <algorithm>

#include "base/folder.hpp"
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

std::vector<Neighbour> foreign_neighbours(const PciPaths& paths, const PciCard& card,
                                          Kernel& kernel) {
  const std::string folder =
      paths.sysfs + "/kernel/iommu_groups/" + std::to_string(card.iommu_group) + "/devices";
  std::vector<Neighbour> list;
  for (const std::string& address : base::names_in(folder)) {
    std::string driver;
    if (address == card.address ||
        link_name(paths.sysfs + "/bus/pci/devices/" + address + "/driver", &driver, kernel) != 0 ||
        driver == kVfioDriver || driver == "pci-stub" || driver == "pcieport") {
      continue;  // these drivers do not prevent VFIO
    }
    list.push_back({address, driver});
  }
  std::sort(list.begin(), list.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.address < b.address; });
  return list;
}

std::string group_neighbours(const PciPaths& paths, const PciCard& card, Kernel& kernel) {
  std::string list;
  for (const Neighbour& one : foreign_neighbours(paths, card, kernel)) {
    list.append(list.empty() ? "" : ", ");
    list.append(one.address).append(" (driver ").append(one.driver).append(")");
  }
  return list;
}

}  // namespace rio::pmd::vfio
