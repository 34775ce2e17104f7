#include "pmd/bus/vfio/remedy.hpp"

#include <cerrno>
#include <cstring>

#include "base/folder.hpp"
#include "base/log.hpp"
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

int log_failed(const PciCard& card, int rc, const std::string& what, const std::string& remedy) {
  base::log_error("%s: %s: %s%s%s", card.address.c_str(), what.c_str(), std::strerror(-rc),
                  remedy.empty() ? "" : ": ", remedy.c_str());
  return rc;
}

int refuse_bar(const PciCard& card, uint64_t len_bytes, bool can_be_mapped) {
  base::log_error(
      "%s: BAR%d has %llu bytes%s: not a RapidIO message card, or the BIOS gave the BAR no room: "
      "%s",
      card.address.c_str(), card.bar, static_cast<unsigned long long>(len_bytes),
      can_be_mapped ? "" : " and cannot be mapped", rescan_command(card.address).c_str());
  return -ENXIO;
}

std::vector<Neighbour> foreign_neighbours(const PciPaths& paths, const PciCard& card,
                                          Kernel& kernel) {
  const std::string folder =
      paths.sysfs + "/kernel/iommu_groups/" + std::to_string(card.iommu_group) + "/devices";
  std::vector<Neighbour> list;
  for (const std::string& address : base::names_in(folder)) {
    std::string driver;
    if (address == card.address ||
        link_name(device_folder(paths, address) + "/driver", &driver, kernel) != 0 ||
        driver == kVfioDriver || driver == "pci-stub" || driver == "pcieport") {
      continue;  // these drivers do not prevent VFIO
    }
    list.push_back({address, driver});
  }
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
