#include "apps/tool/doctor/machine.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

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

constexpr int kGroupsMax = 1024;

/// @param name empty: the user that runs this program. @return 0, -ENOENT (no such user; not
/// logged).
int find_account(const std::string& name, Account* out) {
  Account account;
  const uid_t caller = geteuid();
  const passwd* entry = name.empty() ? getpwuid(caller) : getpwnam(name.c_str());
  if (entry == nullptr) {
    if (!name.empty()) {
      return -ENOENT;
    }
    // A container may run us under a number without a name.
    *out = {.name = std::to_string(caller), .uid = caller, .groups = {getegid()}, .caller = true};
    return 0;
  }
  account.name = entry->pw_name;
  account.uid = entry->pw_uid;
  account.caller = entry->pw_uid == caller;
  int count = kGroupsMax;
  account.groups.resize(kGroupsMax);
  if (getgrouplist(entry->pw_name, entry->pw_gid, account.groups.data(), &count) < 0) {
    count = kGroupsMax;  // the user is in more; these are the first
  }
  account.groups.resize(static_cast<size_t>(count));
  *out = std::move(account);
  return 0;
}

/// The topology of what --root names. @return null where hwloc can make none of it.
std::unique_ptr<pmd::cores::Placement> read_placement(const GlobalOptions& context) {
  std::unique_ptr<pmd::cores::Placement> placement;
  if (!exists(context.paths.sysfs + "/devices/system/cpu") ||
      pmd::cores::Placement::create(&placement, context.root) != 0) {
    return nullptr;
  }
  return placement;
}

/// Bytes of a folder's name "hugepages-2048kB"; 0 if it is none.
uint64_t page_bytes_of(const std::string& name) {
  if (name.size() < 2 || name.substr(name.size() - 2) != "kB") {
    return 0;
  }
  return uint64_t{1024} * number_after(name.substr(0, name.size() - 2), "hugepages-").value_or(0);
}

void add_pools(const std::string& folder, int node, std::vector<HugepagePool>* pools) {
  for (const std::string& name : names_in(folder)) {
    HugepagePool pool;
    pool.page_bytes = page_bytes_of(name);
    pool.node = node;
    pool.folder = joined(folder, name);
    pool.total = number_of(pool.folder + "/nr_hugepages").value_or(0);
    pool.free = number_of(pool.folder + "/free_hugepages").value_or(0);
    if (pool.page_bytes != 0) {
      pools->push_back(pool);
    }
  }
}

}  // namespace

std::vector<HugepagePool> read_hugepage_pools(const pci::PciPaths& paths) {
  std::vector<HugepagePool> pools;
  add_pools(paths.sysfs + "/kernel/mm/hugepages", -1, &pools);
  const std::string nodes = paths.sysfs + "/devices/system/node";
  for (const std::string& name : names_in(nodes)) {
    if (const auto node = number_after(name, "node")) {
      add_pools(joined(nodes, name).append("/hugepages"), static_cast<int>(*node), &pools);
    }
  }
  std::sort(pools.begin(), pools.end(), [](const HugepagePool& a, const HugepagePool& b) {
    return std::tie(a.node, a.page_bytes) < std::tie(b.node, b.page_bytes);
  });
  return pools;
}

bool may_use(const Account& account, const std::string& path) {
  if (account.caller) {
    return faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
  }
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) {
    return false;
  }
  if (account.is_root()) {
    return true;
  }
  unsigned shift = 0;
  if (file.st_uid == account.uid) {
    shift = 6;
  } else if (std::find(account.groups.begin(), account.groups.end(), file.st_gid) !=
             account.groups.end()) {
    shift = 3;
  }
  return ((file.st_mode >> shift) & 6) == 6;
}

int Machine::read(const GlobalOptions& context, const std::string& user,
                  std::unique_ptr<Machine>* out) {
  auto machine = std::make_unique<Machine>(context);
  if (const int rc = find_account(user, &machine->account); rc != 0) {
    return complain("no user \"" + user + "\"", "getent passwd lists them", rc);
  }
  if (const int rc = read_cards(context, &machine->cards); rc != 0) {
    return rc;  // the log has said why
  }
  machine->pools = read_hugepage_pools(context.paths);
  machine->placement = read_placement(context);
  machine->allowed =
      cpu_list(field_of(text_of(context.paths.proc + "/self/status"), "Cpus_allowed_list"));
  machine->isolated = cpu_list(text_of(context.paths.sysfs + "/devices/system/cpu/isolated"));
  *out = std::move(machine);
  return 0;
}

std::vector<Program> Machine::users_of(const CardState& card) const {
  auto programs = files.holders_of(card);
  std::erase_if(programs, [](const Program& program) { return program.name == "rio-tool"; });
  return programs;
}

std::vector<unsigned> Machine::near(const CardState& card) const {
  return placement == nullptr
             ? std::vector<unsigned>()
             : placement->nearest({.pci_address = card.address, .numa_node = card.numa_node});
}

}  // namespace rio::tool
