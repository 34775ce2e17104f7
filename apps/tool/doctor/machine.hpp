/// @file
/// All that doctor looks at, read once; what it can find, and its checks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "apps/tool/system/card_state.hpp"
#include "apps/tool/system/holders.hpp"
#include "pmd/cores/placement.hpp"

namespace rio::tool {

/// A user with their groups.
struct Account {
  std::string name;
  uid_t uid = 0;
  std::vector<gid_t> groups;
  bool caller = true;  ///< the user runs this program

  [[nodiscard]] bool is_root() const { return uid == 0; }
};

/// Whether a user may read and write a file, by its owner, group and mode (and, for the caller, by
/// the kernel's other checks). false where there is no such file.
[[nodiscard]] bool may_use(const Account& account, const std::string& path);

/// The kernel's hugepages of one size, on one node.
struct HugepagePool {
  uint64_t page_bytes = 0;
  int node = -1;  ///< -1: of the whole machine
  uint64_t total = 0;
  uint64_t free = 0;
  std::string folder;  ///< in sysfs, with nr_hugepages
};

/// The pools of the machine and those of its nodes, by node, then by size. A file that cannot be
/// read, or holds no number, counts as 0.
[[nodiscard]] std::vector<HugepagePool> read_hugepage_pools(const pci::PciPaths& paths);

/// Constant after read(). Control path, one thread.
struct Machine {
  const GlobalOptions& context;
  Account account;  ///< for whom rights are looked at
  std::vector<CardState> cards;
  OpenFiles files;
  std::vector<HugepagePool> pools;
  /// All CPUs, allowed or not; null where there is no topology.
  std::unique_ptr<pmd::cores::Placement> placement;
  std::vector<unsigned> allowed;   ///< CPUs that a process started here may use
  std::vector<unsigned> isolated;  ///< CPUs that the scheduler leaves alone

  /// @param user empty: the caller. @return 0 or -errno, said on stderr.
  [[nodiscard]] static int read(const GlobalOptions& context, const std::string& user,
                                std::unique_ptr<Machine>* out);

  explicit Machine(const GlobalOptions& the_context)
      : context(the_context), files(the_context.paths) {}

  /// Programs that use a card. Not rio-tool, which looks at it beside them.
  [[nodiscard]] std::vector<Program> users_of(const CardState& card) const;

  /// CPUs near a card; empty where there is no topology.
  [[nodiscard]] std::vector<unsigned> near(const CardState& card) const;
};

enum class Severity : unsigned char {
  kWarning,  ///< works, but not as it could
  kError,    ///< does not work, or not for long
};

/// A kind of finding. Ids are stable: scripts may look for them.
struct Kind {
  const char* id;
  Severity severity;
  const char* line;  ///< what is wrong, in a line
  const char* why;   ///< what comes of it, and how it comes about
};

/// All kinds, in the order in which doctor looks.
[[nodiscard]] std::span<const Kind> all_kinds();

/// @return null if there is none of this id.
[[nodiscard]] const Kind* find_kind(const std::string& id);

struct Finding {
  const Kind* kind = nullptr;
  std::string card;    ///< address, empty if it is the machine's
  std::string seen;    ///< what was found, with its numbers
  std::string remedy;  ///< the exact command of the shell; empty where none can do it
  std::string advice;  ///< what a person must do, instead or besides
};

/// All findings of one run of doctor. One thread.
struct Findings {
  std::vector<Finding> all;
  std::vector<std::string> unseen;  ///< what could not be looked at, and why

  /// @param id one of all_kinds(); anything else is a mistake of the program.
  /// @param remedy, advice one of them must say something.
  void add(const char* id, const std::string& card, const std::string& seen,
           const std::string& remedy, const std::string& advice = "");
  [[nodiscard]] size_t count(Severity severity) const;
};

/// A check. Adds what it finds, in the order of all_kinds() as far as it can.
using Check = void (*)(const Machine& machine, Findings& findings);

void check_bars(const Machine& machine, Findings& findings);
void check_link(const Machine& machine, Findings& findings);
void check_binding(const Machine& machine, Findings& findings);
void check_iommu(const Machine& machine, Findings& findings);
void check_rights(const Machine& machine, Findings& findings);
void check_hugepages(const Machine& machine, Findings& findings);
void check_programs(const Machine& machine, Findings& findings);
void check_dpdk(const Machine& machine, Findings& findings);
void check_cpus(const Machine& machine, Findings& findings);

// Foreign text and bytes that the checks look at. Pure functions, any thread.

/// Soft limit of memory that a process may lock, in bytes, from the text of proc/PID/limits;
/// UINT64_MAX for unlimited. @return nothing where it does not say.
[[nodiscard]] std::optional<uint64_t> parse_memlock(const std::string& limits);

/// Folders where hugetlbfs is mounted, from the text of proc/mounts; each once.
[[nodiscard]] std::vector<std::string> hugetlbfs_mounts(const std::string& text);

/// A word for the shell, in quotes where it needs them: any user may have chosen a file's name.
[[nodiscard]] std::string shell_word(const std::string& text);

/// Version of EAL's library that a shared library was built for. @param library its bytes, any.
/// @return 23 of librte_eal.so.23; nothing where it names none.
[[nodiscard]] std::optional<unsigned> needed_eal(const std::string& library);

}  // namespace rio::tool
