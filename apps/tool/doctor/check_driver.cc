// The driver of each card, and the IOMMU between the cards and memory.
#include <algorithm>

#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/binding.hpp"
#include "apps/tool/system/files.hpp"
#include "pmd/api/pci.hpp"

namespace rio::tool {
namespace {

bool is_uio(const CardState& card) {
  return card.driver == "uio_pci_generic" || card.driver == "igb_uio";
}

void check_driver(const Machine& machine, const CardState& card, Findings& findings) {
  const std::string& address = card.address;
  const std::string& driver = card.driver;
  if (driver == "vfio-pci" || is_uio(card)) {
    if (!card.override_driver.empty() && card.override_driver != driver) {
      findings.add("bind.override", address,
                   driver + " has it, driver_override says " + card.override_driver,
                   "rio-tool bind --driver " + driver + " " + address);
    }
    if (!card.awake()) {
      findings.add("bind.sleeps", address, "its power state is " + card.power,
                   "echo options vfio-pci disable_idle_d3=1 > /etc/modprobe.d/riopmd.conf",
                   "then reboot, or load vfio-pci again and bind the card again");
    }
    return;
  }
  const std::string wanted = wanted_driver(card);
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

void check_on(const Machine& machine, Findings& findings) {
  const pci::PciPaths& paths = machine.context.paths;
  if (!names_in(paths.sysfs + "/kernel/iommu_groups").empty()) {
    return;
  }
  const std::string tables = paths.sysfs + "/firmware/acpi/tables/";
  const bool intel = exists(tables + "DMAR");
  if (!intel && !exists(tables + "IVRS")) {
    findings.add("iommu.off-firmware", "", "no IOMMU groups, and no table of the firmware", "",
                 "switch VT-d or AMD-Vi on in the firmware; in a virtual machine, give it a "
                 "virtual IOMMU; until then: rio-tool bind --driver uio_pci_generic");
    return;
  }
  const std::string option = intel ? "intel_iommu=on" : "amd_iommu=on";
  findings.add("iommu.off-kernel", "",
               std::string("no IOMMU groups, though the firmware has the table ") +
                   (intel ? "DMAR" : "IVRS"),
               // An earlier setting may say "off", and the last one wins.
               "sed -i -E 's/(intel_|amd_)?iommu=[^ \"]* *//g; s/^GRUB_CMDLINE_LINUX=\"/&" +
                   option + " iommu=pt /' /etc/default/grub && update-grub",
               "then reboot; without GRUB: " + option + " iommu=pt on the kernel's command line");
}

void check_group(const Machine& machine, const CardState& card, Findings& findings) {
  const pci::PciPaths& paths = machine.context.paths;
  const auto others = pci::foreign_neighbours(paths, card);
  if (!is_uio(card) && !others.empty()) {
    std::string command;
    for (const auto& one : others) {
      command.append(command.empty() ? "rio-tool bind --force --driver vfio-pci " : " ");
      command.append(one.address);
    }
    findings.add("iommu.group-shared", card.address,
                 "in group " + std::to_string(card.iommu_group) +
                     " too: " + pci::group_neighbours(paths, card),
                 command,
                 "if this machine needs them: another slot for the card, or a slot with ACS");
  }
  const std::string type =
      text_of(paths.sysfs + "/kernel/iommu_groups/" + std::to_string(card.iommu_group) + "/type");
  if (is_uio(card) && type.rfind("DMA", 0) == 0) {
    findings.add("iommu.blocks-uio", card.address,
                 "bound to " + card.driver + ", and its IOMMU group " +
                     std::to_string(card.iommu_group) + " is translated (type " + type + ")",
                 "rio-tool bind --driver vfio-pci " + card.address, "or boot with iommu=pt");
  }
}

}  // namespace

void check_binding(const Machine& machine, Findings& findings) {
  for (const CardState& card : machine.cards) {
    check_driver(machine, card, findings);
  }
}

void check_iommu(const Machine& machine, Findings& findings) {
  if (!machine.cards.empty()) {
    check_on(machine, findings);
  }
  for (const CardState& card : machine.cards) {
    if (card.iommu_group >= 0) {
      check_group(machine, card, findings);
    } else if (card.driver == "vfio-pci") {
      findings.add("iommu.no-group", card.address, "it has no link iommu_group",
                   "rio-tool bind --driver uio_pci_generic " + card.address,
                   "better: an IOMMU, see iommu.off-kernel and iommu.off-firmware");
    }
  }
  const std::string lockdown =
      chosen_word(text_of(machine.context.paths.sysfs + "/kernel/security/lockdown"));
  const auto uio = std::find_if(machine.cards.begin(), machine.cards.end(), is_uio);
  if (!lockdown.empty() && lockdown != "none" && uio != machine.cards.end()) {
    findings.add("kernel.lockdown", uio->address,
                 "lockdown is " + lockdown + ", the card is bound to " + uio->driver,
                 "rio-tool bind --driver vfio-pci " + uio->address);
  }
}

}  // namespace rio::tool
