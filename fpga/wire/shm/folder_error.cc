#include "fpga/wire/shm/folder_error.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/trouble.hpp"

namespace rio::wire::shm {
namespace {

constexpr const char* kElsewhere = "set RIO_RUNTIME_DIR to a folder of your own";

}  // namespace

int fail_at(std::string* error, int rc, const std::string& path, const char* what) {
  const bool full = rc == -ENOSPC || rc == -EDQUOT;
  const std::string remedy = full || rc == -EACCES ? "" : base::remedy_of(rc);
  *error = path + " cannot be " + what + ": " + std::strerror(-rc);
  *error += !remedy.empty() ? remedy : std::string(full ? "; make room, or " : "; ") + kElsewhere;
  return rc;
}

int check_proc(const base::Fd& folder, std::string* error) {
  struct stat info {};
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get());
  if (stat(path.c_str(), &info) == 0) {
    return 0;
  }
  const int rc = -errno;
  *error = rc == -ENOENT || rc == -ENOTDIR
               ? "/proc is not mounted (" + path +
                     "), which members need to find each other; mount it: mount "
                     "-t proc proc /proc"
               : path + ": " + std::strerror(-rc) + base::remedy_of(rc);
  return rc;
}

int fail_at_base(std::string* error, int rc, const std::string& path, const char* what) {
  static_cast<void>(fail_at(error, rc, path, what));
  if (error->find(kElsewhere) == std::string::npos) {
    *error += std::string("; or ") + kElsewhere;
  }
  return rc;
}

}  // namespace rio::wire::shm
