// Who else is there?
#include <string>
#include <vector>

#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/doctor/mounts.hpp"
#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

void check_card(const Machine& machine, const CardState& card, Findings& findings) {
  auto holders = machine.users_of(card);
  std::erase_if(holders, [](const Program& program) { return program.secondary; });
  if (holders.size() < 2) {
    return;
  }
  std::string command = "kill";
  for (size_t i = 1; i < holders.size(); ++i) {
    command += " " + std::to_string(holders[i].pid);
  }
  findings.add("programs.two", card.card.address, names_of(holders), command,
               "keep the one that you want; two programs may share a card as primary and "
               "secondary of one DPDK application");
}

/// Run-time folders of DPDK: of root, and of a user who is logged in.
std::vector<std::string> runtime_folders(const Machine& machine) {
  return {"/var/run/dpdk", "/run/user/" + std::to_string(machine.account.uid) + "/dpdk"};
}

void check_leftovers(const Machine& machine, Findings& findings) {
  for (const std::string& folder : runtime_folders(machine)) {
    std::string list;
    for (const std::string& prefix : names_in(machine.context.root + folder)) {
      const std::string place = joined(folder, prefix);
      // A program that ends as it should takes its socket away and leaves the rest.
      if (exists(joined(machine.context.root + place, "mp_socket")) &&
          !machine.files.touches(joined(joined("/dpdk", prefix), ""))) {
        list.append(" ").append(shell_word(place));
      }
    }
    if (!list.empty() && machine.files.complete()) {
      findings.add("dpdk.leftover", "", "no program uses" + list, "rm -r" + list);
    }
  }
}

}  // namespace

void check_programs(const Machine& machine, Findings& findings) {
  for (const CardState& card : machine.cards) {
    check_card(machine, card, findings);
  }
  check_leftovers(machine, findings);
  if (!machine.files.complete()) {
    findings.add_unseen("programs of other users (run as root)");
  }
}

}  // namespace rio::tool
