#include "base/own_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/trouble.hpp"

namespace rio::base {
namespace {

constexpr const char* kElsewhere = "set RIO_RUNTIME_DIR to a folder of your own";

}  // namespace

std::string runtime_base() {
  const char* const base = std::getenv("RIO_RUNTIME_DIR");
  return base == nullptr || *base == '\0' ? "/dev/shm" : base;
}

std::string user_folder_name() {
  return "riopmd-" + std::to_string(geteuid());
}

int check_own_folder(const struct stat& info, const std::string& path, std::string* error) {
  if (!S_ISDIR(info.st_mode)) {
    *error = path + " is not a folder; remove it, or " + kElsewhere;
    return -ENOTDIR;
  }
  if (info.st_uid != geteuid()) {
    *error = path + " belongs to user " + std::to_string(info.st_uid) +
             ", this process is of user " + std::to_string(geteuid()) +
             "; let that user remove it, or " + kElsewhere;
    return -EPERM;
  }
  if ((info.st_mode & 077) != 0) {
    *error = path + " is open to other users; remove it, or " + kElsewhere;
    return -EPERM;
  }
  return 0;
}

int fail_at(std::string* error, int rc, const std::string& path, const char* what, bool in_base) {
  const bool full = rc == -ENOSPC || rc == -EDQUOT;
  const std::string remedy = full || rc == -EACCES ? "" : remedy_of(rc);
  *error = path + " cannot be " + what + ": " + std::strerror(-rc) + remedy;
  if (remedy.empty() || in_base) {
    *error += std::string(!remedy.empty() ? "; or "
                          : full          ? "; make room, or "
                                          : "; ") +
              kElsewhere;
  }
  return rc;
}

int make_user_folder(std::string* out, std::string* error) {
  const std::string path = runtime_base() + "/" + user_folder_name();
  struct stat info {};
  if ((mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) || lstat(path.c_str(), &info) != 0) {
    return fail_at(error, -errno, path, "made", true);
  }
  if (const int rc = check_own_folder(info, path, error); rc != 0) {
    return rc;
  }
  *out = path;
  return 0;
}

}  // namespace rio::base
