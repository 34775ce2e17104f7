// Is there a card, and does it answer?
#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/files.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

std::string rescan(const CardState& card) {
  return "rio-tool reset --rescan " + card.address;
}

void check_id(const CardState& card, Findings& findings) {
  const std::string& address = card.address;
  if (!card.id) {
    findings.unseen.push_back(address + ": its registers" +
                              (card.awake()
                                   ? " (run as root)"
                                   : " (vfio-pci keeps it powered down until a program opens "
                                     "it)"));
    return;
  }
  if (card.id->all_ones()) {
    findings.add("card.all-ones", address, "the first word of its BAR reads ffffffff", rescan(card),
                 "reboot if that does not help");
  } else if (!card.id->is_card()) {
    findings.add("card.gateware", address,
                 base::formatted("its BAR begins with %08x", card.id->magic), "",
                 "load the message card's gateware into the FPGA, then: " + rescan(card));
  } else if (card.id->edition() < regs::kEdition) {
    findings.add("card.edition", address,
                 base::formatted("its gateware keeps edition %u of the contract, this driver needs "
                                 "edition %u",
                                 card.id->edition(), regs::kEdition),
                 "", "load newer gateware into the FPGA, then: " + rescan(card));
  }
}

void check_command(const Machine& machine, const CardState& card, Findings& findings) {
  const bool uio = !uio_node(machine.context.paths, card.address).empty();
  const auto holders = machine.users_of(card);
  // While the card is not in use, neither has to be switched on.
  if (card.awake() && (uio || !holders.empty()) && !card.config->memory_on()) {
    findings.add("bar.decoding-off", card.address, "the command register's memory bit is 0",
                 "setpci -s " + card.address + " COMMAND=2:2");
  }
  if (!holders.empty() && !card.config->master_on()) {
    findings.add("bar.bus-master-off", card.address,
                 names_of(holders) + " uses it, and the command register's bus master bit is 0",
                 "setpci -s " + card.address + " COMMAND=4:4",
                 "or restart the program, which sets the card up from the beginning");
  }
}

void check_card(const Machine& machine, const CardState& card, Findings& findings) {
  const std::string& address = card.address;
  const auto bar = static_cast<size_t>(card.bar);
  if (card.config && card.config->gone) {
    findings.add("card.gone", address, "all ones in configuration space", rescan(card),
                 "if it does not come back: power and gateware of the card, then a reboot");
    return;  // nothing else that it says means anything
  }
  if (!card.bars[bar].there() || card.bars[bar].unset()) {
    findings.add("bar.no-room", address,
                 "BAR" + std::to_string(bar) + " of " + size_text(card.bars[bar].len_bytes()) +
                     " has no address",
                 rescan(card),
                 "if it stays so: load the gateware before the machine starts, or boot with "
                 "pci=realloc");
    return;
  }
  const size_t before = findings.all.size();
  if (card.config) {
    check_command(machine, card, findings);
  }
  if (findings.all.size() == before) {
    check_id(card, findings);
  }
}

}  // namespace

void check_bars(const Machine& machine, Findings& findings) {
  if (machine.cards.empty()) {
    findings.add("card.none", "", "no PCI device of this machine is a message card",
                 "echo 1 > /sys/bus/pci/rescan",
                 "if lspci -d 10ee: shows nothing then: power and gateware of the card, and a "
                 "reboot with the gateware loaded");
  }
  for (const CardState& card : machine.cards) {
    check_card(machine, card, findings);
  }
}

}  // namespace rio::tool
