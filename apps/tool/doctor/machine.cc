#include "apps/tool/doctor/machine.hpp"

#include <cerrno>

#include "apps/tool/system/files.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::tool {
namespace {

std::vector<unsigned> cpu_list(const std::string& text) {
  std::vector<unsigned> cpus;
  std::string problem;
  if (!text.empty() && !pmd::cores::parse_cpu_list(text, &cpus, &problem)) {
    cpus.clear();
  }
  return cpus;
}

/// The topology of what --root names. @return null where hwloc can make none of it.
std::unique_ptr<pmd::cores::Placement> read_placement(const GlobalOptions& context) {
  std::unique_ptr<pmd::cores::Placement> placement;
  if (!exists(context.paths.sysfs + "/devices/system/cpu") ||
      pmd::cores::Placement::create(context.root, &placement) != 0) {
    return nullptr;
  }
  return placement;
}

}  // namespace

int Machine::read(const GlobalOptions& context, const std::string& user,
                  std::unique_ptr<Machine>* out) {
  auto machine = std::make_unique<Machine>(context);
  if (const int rc = find_account(user, &machine->account); rc != 0) {
    (void)complain("no user \"" + user + "\"", "getent passwd lists them");
    return rc;
  }
  if (const int rc = read_cards(context, &machine->cards); rc != 0) {
    return rc;  // the log has said why
  }
  machine->pools = read_hugepage_pools(context.paths);
  machine->placement = read_placement(context);
  const std::string status = text_of(context.paths.proc + "/self/status").value_or("");
  machine->allowed = cpu_list(field_of(status, "Cpus_allowed_list").value_or(""));
  machine->isolated =
      cpu_list(text_of(context.paths.sysfs + "/devices/system/cpu/isolated").value_or(""));
  *out = std::move(machine);
  return 0;
}

std::vector<Program> Machine::users_of(const CardState& card) const {
  auto programs = files.holders_of(card.card);
  std::erase_if(programs, [](const Program& program) { return program.name == "rio-tool"; });
  return programs;
}

std::vector<unsigned> Machine::near(const CardState& card) const {
  return placement == nullptr ? std::vector<unsigned>()
                              : placement->nearest({.pci_address = card.card.address,
                                                    .numa_node = card.card.numa_node});
}

}  // namespace rio::tool
