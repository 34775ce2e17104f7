// Programs that use the cards, what dead ones left, and the DPDK that they would load.
#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

constexpr const char* kEal = "librte_eal.so.";
constexpr const char* kDriver = "librte_raw_rio.so";

/// Folders of libraries, and those of DPDK's drivers below them.
std::vector<std::string> library_folders(const std::string& root) {
  std::vector<std::string> folders;
  for (const char* top : {"/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"}) {
    folders.push_back(std::string(top));
    for (const std::string& name : names_in(root + top)) {
      if (name.find("-linux-gnu") != std::string::npos) {
        folders.push_back(joined(top, name));
      }
    }
  }
  const std::vector<std::string> tops = folders;
  for (const std::string& top : tops) {
    for (const std::string& name : names_in(root + top + "/dpdk")) {
      folders.push_back(joined(top + "/dpdk", name));
    }
  }
  return folders;
}

/// Versions of EAL's library: "23" of librte_eal.so.23.
std::string eal_versions(const std::string& root, const std::vector<std::string>& folders) {
  std::string versions;
  for (const std::string& folder : folders) {
    for (const std::string& name : names_in(root + folder)) {
      if (const auto version = number_after(name, kEal)) {
        versions += " " + std::to_string(*version);
      }
    }
  }
  return versions.empty() ? "" : versions + " ";
}

void add_version(const std::string& path, unsigned needed, const std::string& versions,
                 Findings& findings) {
  findings.add(
      "dpdk.version", "",
      path + " wants librte_eal.so." + std::to_string(needed) +
          ", installed:" + versions.substr(0, versions.size() - 1),
      "rm " + shell_word(path),
      "then build and install the driver anew: meson setup --wipe build && meson install -C build");
}

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
  findings.add("programs.two", card.address, names_of(holders), command,
               "keep the one that you want; two programs may share a card as primary and "
               "secondary of one DPDK application");
}

void check_leftovers(const Machine& machine, Findings& findings) {
  // Run-time folders of DPDK: of root, and of a user who is logged in.
  const std::string of_user = "/run/user/" + std::to_string(machine.account.uid) + "/dpdk";
  for (const std::string& folder : {std::string("/var/run/dpdk"), of_user}) {
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

std::optional<unsigned> needed_eal(const std::string& library) {
  const size_t at = library.find(kEal);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  // Names in a library's table of strings end with a zero.
  const std::string name = library.substr(at, library.find('\0', at) - at);
  return number_after(name, kEal);
}

void check_programs(const Machine& machine, Findings& findings) {
  for (const CardState& card : machine.cards) {
    check_card(machine, card, findings);
  }
  check_leftovers(machine, findings);
  if (!machine.files.complete()) {
    findings.unseen.push_back("programs of other users (run as root)");
  }
}

void check_dpdk(const Machine& machine, Findings& findings) {
  const std::string& root = machine.context.root;
  const auto folders = library_folders(root);
  const std::string versions = eal_versions(root, folders);
  if (versions.empty()) {
    findings.add("dpdk.missing", "", "no librte_eal.so in the folders of libraries",
                 "apt-get install dpdk libdpdk-dev", "or build without: -Ddpdk=disabled");
    return;
  }
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + kDriver;
    const auto needed = needed_eal(text_of(root + path));
    if (needed && versions.find(" " + std::to_string(*needed) + " ") == std::string::npos) {
      add_version(path, *needed, versions, findings);
    }
  }
}

}  // namespace rio::tool
