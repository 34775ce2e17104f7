#include "pmd/api/pci.hpp"

#include "pmd/bus/vfio/bar_bus.hpp"

namespace rio::pci {

using pmd::vfio::real_kernel;

int read_card_id(const PciPaths& paths, const PciCard& card, CardId* out) {
  return pmd::vfio::read_card_id(paths, real_kernel(), card, out);
}

int map_bar(const std::string& address, const PciPaths& paths, std::unique_ptr<pmd::Bus>* out) {
  std::unique_ptr<pmd::vfio::BarBus> bus;
  const int rc = pmd::vfio::BarBus::open(address, paths, real_kernel(), &bus);
  if (rc == 0) {
    *out = std::move(bus);
  }
  return rc;
}

std::vector<Neighbour> foreign_neighbours(const PciPaths& paths, const PciCard& card) {
  return pmd::vfio::foreign_neighbours(paths, real_kernel(), card);
}

std::string group_neighbours(const PciPaths& paths, const PciCard& card) {
  return pmd::vfio::group_neighbours(paths, real_kernel(), card);
}

int read_text(const std::string& path, std::string* out) {
  return pmd::vfio::read_text(real_kernel(), path, out);
}

int write_text(const std::string& path, const std::string& text) {
  return pmd::vfio::write_text(real_kernel(), path, text);
}

int link_name(const std::string& path, std::string* out) {
  return pmd::vfio::link_name(real_kernel(), path, out);
}

}  // namespace rio::pci
