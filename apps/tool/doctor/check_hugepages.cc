// Are there hugepages, of the right size, in the right place, and free?
#include <algorithm>
#include <set>
#include <sstream>

#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

constexpr uint64_t kPageBytes = uint64_t{2} << 20;
constexpr uint64_t kPagesWanted = 64;  // 128 MiB

/// Sum over the pools of a node; -1: of the whole machine.
struct Sum {
  uint64_t total = 0;
  uint64_t free = 0;
  uint64_t other_total = 0;  ///< of other sizes
};

Sum sum_of(const Machine& machine, int node) {
  Sum sum;
  for (const HugepagePool& pool : machine.pools) {
    if (pool.node != node) {
      continue;
    }
    if (pool.page_bytes == kPageBytes) {
      sum.total += pool.total;
      sum.free += pool.free;
    } else {
      sum.other_total += pool.total;
    }
  }
  return sum;
}

std::string pages(uint64_t count) {
  return std::to_string(count) + " of 2 MiB";
}

std::string command(uint64_t count, int node = -1) {
  return "rio-tool hugepages --size 2M " +
         (node < 0 ? "" : "--node " + std::to_string(node) + " ") + std::to_string(count);
}

/// @return whether there are any that can be used.
bool check_count(const Machine& machine, Findings& findings) {
  const Sum sum = sum_of(machine, -1);
  const std::string boot =
      "for good: hugepages=" + std::to_string(kPagesWanted) + " on the kernel's command line";
  if (sum.total == 0 && sum.other_total == 0) {
    findings.add("hugepages.none", "", "nr_hugepages is 0 for each size", command(kPagesWanted),
                 boot);
  } else if (sum.total == 0) {
    findings.add("hugepages.size", "",
                 std::to_string(sum.other_total) + " pages of other sizes, none of 2 MiB",
                 command(kPagesWanted), boot);
  } else if (sum.total < kPagesWanted) {
    findings.add("hugepages.few", "", pages(sum.total) + ", " + pages(kPagesWanted) + " are wanted",
                 command(kPagesWanted), boot);
  } else if (sum.free == 0) {
    findings.add("hugepages.taken", "", "0 free of " + pages(sum.total),
                 command(sum.total + kPagesWanted),
                 "or end the programs that have them: grep -l huge /proc/*/maps");
  }
  return sum.total != 0;
}

void check_nodes(const Machine& machine, Findings& findings) {
  std::set<int> told;
  for (const CardState& card : machine.cards) {
    const int node = card.numa_node;
    const bool known =
        std::any_of(machine.pools.begin(), machine.pools.end(), [node](const HugepagePool& pool) {
          return pool.node == node && pool.page_bytes == kPageBytes;
        });
    if (node < 0 || !known || sum_of(machine, node).total != 0 || !told.insert(node).second) {
      continue;
    }
    findings.add("hugepages.node", card.address,
                 "the card is on node " + std::to_string(node) + ", the pages are on others",
                 command(kPagesWanted, node));
  }
}

void check_files(const Machine& machine, Findings& findings) {
  const auto mounts = hugetlbfs_mounts(text_of(machine.context.paths.proc + "/mounts"));
  if (mounts.empty()) {
    findings.add("hugepages.mount", "", "no hugetlbfs in /proc/mounts",
                 "mkdir -p /dev/hugepages && mount -t hugetlbfs hugetlbfs /dev/hugepages");
  }
  for (const std::string& mount : mounts) {
    std::string list;
    for (const std::string& name : names_in(machine.context.root + mount)) {
      // Before it the prefix of the program, after it the number of the page.
      const std::string file = joined(mount, name);
      if (name.find("map_") != std::string::npos && machine.files.holders_of_any({file}).empty()) {
        list.append(" ").append(shell_word(file));
      }
    }
    if (!list.empty() && machine.files.complete()) {
      findings.add("hugepages.leftover", "",
                   "no program has mapped" + list.substr(0, 200) + (list.size() > 200 ? " …" : ""),
                   "rm" + list);
    }
  }
}

}  // namespace

std::vector<std::string> hugetlbfs_mounts(const std::string& text) {
  std::vector<std::string> mounts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device;
    std::string folder;
    std::string type;
    fields >> device >> folder >> type;
    // The kernel writes blanks as \040; such a folder is not supported.
    if (type == "hugetlbfs" && folder.rfind('/', 0) == 0 &&
        folder.find("/..") == std::string::npos &&
        std::find(mounts.begin(), mounts.end(), folder) == mounts.end()) {
      mounts.push_back(folder);
    }
  }
  return mounts;
}

std::string shell_word(const std::string& text) {
  static constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) {
    return text;
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

void check_hugepages(const Machine& machine, Findings& findings) {
  if (check_count(machine, findings)) {
    check_nodes(machine, findings);
    check_files(machine, findings);
  }
}

}  // namespace rio::tool
