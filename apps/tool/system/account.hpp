/// @file
/// For whom rights are looked at.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rio::tool {

/// A user with his groups.
struct Account {
  std::string name;
  uid_t uid = 0;
  std::vector<gid_t> groups;
  bool caller = true;  ///< he runs this program

  [[nodiscard]] bool is_root() const { return uid == 0; }
};

/// @param name empty: who runs this program. @return 0, -ENOENT (no such user; not logged).
[[nodiscard]] int find_account(const std::string& name, Account* out);

/// Whether he may read and write a file, by its owner, group and mode (and, for the caller, by
/// whatever else the kernel asks). false where there is none.
[[nodiscard]] bool may_use(const Account& account, const std::string& path);

}  // namespace rio::tool
