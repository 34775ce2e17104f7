// Which driver has each card.
#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/binding.hpp"

namespace rio::tool {
namespace {

bool usable(const std::string& driver) {
  return driver == "vfio-pci" || driver == "uio_pci_generic" || driver == "igb_uio";
}

void check_card(const Machine& machine, const CardState& card, Findings& findings) {
  const std::string& address = card.card.address;
  const std::string& driver = card.card.driver;
  if (usable(driver)) {
    if (!card.override_driver.empty() && card.override_driver != driver) {
      findings.add("bind.override", address,
                   driver + " has it, driver_override says " + card.override_driver,
                   "rio-tool bind --driver " + driver + " " + address);
    }
    return;
  }
  const std::string wanted = wanted_driver(card.card);
  if (!driver_loaded(machine.context.paths, wanted)) {
    findings.add("bind.module", address, "there is no /sys/bus/pci/drivers/" + wanted,
                 "modprobe " + wanted);
  }
  const std::string command = "rio-tool bind --driver " + wanted + " " + address;
  if (driver.empty()) {
    findings.add("bind.none", address, "no driver is bound", command);
  } else {
    findings.add("bind.kernel", address, "the driver " + driver + " has it", command);
  }
}

}  // namespace

void check_binding(const Machine& machine, Findings& findings) {
  for (const CardState& card : machine.cards) {
    check_card(machine, card, findings);
  }
}

}  // namespace rio::tool
