#include "apps/tool/system/binding.hpp"

#include <algorithm>
#include <cerrno>

#include "apps/tool/system/card_state.hpp"
#include "apps/tool/system/files.hpp"
#include "apps/tool/system/holders.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

using pci::PciCard;
using pci::PciPaths;

/// Name a device by its class code (PCI Code and ID Assignment).
std::string kind_of(const PciPaths& paths, const PciCard& card) {
  const uint64_t code = number_of(device_folder(paths, card.address) + "/class").value_or(0);
  const uint64_t base_class = code >> 16;
  const char* const kind = base_class == 0x01   ? "storage device"
                           : base_class == 0x02 ? "network device"
                           : base_class == 0x03 ? "display device"
                           : base_class == 0x06 ? "bridge"
                                                : "device";
  return base::formatted("a %s (%04x:%04x)", kind, card.vendor, card.device);
}

int refuse_if_not_ours(const GlobalOptions& context, const PciCard& card, const std::string& verb) {
  std::vector<PciCard> ours;
  if (const int rc = pci::find_cards(context.paths, &ours); rc != 0) {
    return rc;
  }
  if (std::any_of(ours.begin(), ours.end(),
                  [&card](const PciCard& one) { return one.address == card.address; })) {
    return 0;
  }
  return complain(card.address + " is no RapidIO card but " + kind_of(context.paths, card) +
                      (card.driver.empty() ? "" : ", driver " + card.driver) + ": not " + verb,
                  "rio-tool list shows the cards; --force does it all the same, and may take this "
                  "machine's network or disk away",
                  -EPERM);
}

int refuse_if_used(const GlobalOptions& context, const PciCard& card, const std::string& verb) {
  const auto programs = OpenFiles(context.paths).holders_of(card);
  if (programs.empty()) {
    return 0;
  }
  return complain(card.address + " is in use by " + names_of(programs) + ": not " + verb,
                  "end it first (kill " + std::to_string(programs.front().pid) +
                      "); --force takes the card away from it",
                  -EBUSY);
}

std::string refusal_of(const PciCard& card, const std::string& driver) {
  if (driver == "vfio-pci" && card.iommu_group < 0) {
    return "vfio-pci needs an IOMMU, and the card is in no IOMMU group: rio-tool doctor says how "
           "to "
           "switch it on; or rio-tool bind --driver uio_pci_generic " +
           card.address;
  }
  return "dmesg | tail says why " + driver + " refused the card";
}

/// Take a device from the driver that has it. @return 0 or -errno, said on stderr.
int release(const PciPaths& paths, SysfsWriter& writer, const std::string& address,
            const std::string& driver) {
  if (const int rc = writer.write(device_folder(paths, address) + "/driver/unbind", address);
      rc != 0) {
    return rc;
  }
  if (!writer.wait_for([&] { return driver_of(paths, address).empty(); })) {
    return complain(address + ": the driver " + driver + " does not let go of it",
                    "end the programs that use it: rio-tool doctor names them", -ETIMEDOUT);
  }
  return 0;
}

}  // namespace

std::string driver_of(const PciPaths& paths, const std::string& address) {
  std::string name;
  (void)pci::link_name(device_folder(paths, address) + "/driver", &name);
  return name;
}

std::string wanted_driver(const PciCard& card) {
  return card.iommu_group >= 0 ? "vfio-pci" : "uio_pci_generic";
}

bool driver_loaded(const PciPaths& paths, const std::string& driver) {
  return !driver.empty() && driver.front() != '.' && driver.find('/') == std::string::npos &&
         exists(paths.sysfs + "/bus/pci/drivers/" + driver);
}

int find_to_change(const GlobalOptions& context, const std::string& address,
                   const std::string& verb, bool force, PciCard* out) {
  PciCard card;
  int rc = pci::find_card(context.paths, address, &card);
  rc = rc != 0 || force ? rc : refuse_if_not_ours(context, card, verb);
  rc = rc != 0 || force ? rc : refuse_if_used(context, card, verb);
  if (rc == 0) {
    *out = card;
  }
  return rc;
}

int unbind_card(const GlobalOptions& context, SysfsWriter& writer, const PciCard& card) {
  const std::string folder = device_folder(context.paths, card.address);
  // First, so that nothing binds it again by itself.
  if (const int rc = writer.write(folder + "/driver_override", ""); rc != 0) {
    return rc;
  }
  return driver_of(context.paths, card.address).empty()
             ? 0
             : release(context.paths, writer, card.address, card.driver);
}

int bind_card(const GlobalOptions& context, SysfsWriter& writer, const PciCard& card,
              const std::string& driver) {
  const PciPaths& paths = context.paths;
  const std::string folder = device_folder(paths, card.address);
  const bool any = driver == "default";
  if (!any && !driver_loaded(paths, driver)) {
    return complain("no driver \"" + driver + "\" is loaded", "modprobe " + driver, -ENOENT);
  }
  // A dry run may follow on writes that were not done: what the caller says counts.
  const std::string now = writer.dry_run() ? card.driver : driver_of(paths, card.address);
  if (const int rc = writer.write(folder + "/driver_override", any ? "" : driver); rc != 0) {
    return rc;
  }
  if (!any && now == driver) {
    return 0;
  }
  if (const int rc = now.empty() ? 0 : release(paths, writer, card.address, now); rc != 0) {
    return rc;
  }
  if (const int rc = writer.write(paths.sysfs + "/bus/pci/drivers_probe", card.address,
                                  any ? "" : refusal_of(card, driver));
      rc != 0) {
    return rc;
  }
  if (!any && !writer.wait_for([&] { return driver_of(paths, card.address) == driver; })) {
    return complain(card.address + ": " + driver + " did not take it", refusal_of(card, driver),
                    -EIO);
  }
  return 0;
}

}  // namespace rio::tool
