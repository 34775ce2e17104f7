#include "apps/tool/system/account.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rio::tool {
namespace {

constexpr int kGroupsMax = 1024;

}  // namespace

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

}  // namespace rio::tool
