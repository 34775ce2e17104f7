/// @file
/// For whom rights are looked at.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rio::tool {

/// A user with their groups.
struct Account {
  std::string name;
  uid_t uid = 0;
  std::vector<gid_t> groups;
  bool caller = true;  ///< the user runs this program

  [[nodiscard]] bool is_root() const { return uid == 0; }
};

/// @param name empty: the user that runs this program. @return 0, -ENOENT (no such user; not
/// logged).
[[nodiscard]] int find_account(const std::string& name, Account* out);

/// Whether a user may read and write a file, by its owner, group and mode (and, for the caller, by
/// the kernel's other checks). false where there is no such file.
[[nodiscard]] bool may_use(const Account& account, const std::string& path);

}  // namespace rio::tool
