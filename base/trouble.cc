#include "base/trouble.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace rio::base {

const char* remedy_of(int rc) {
  switch (-rc) {
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    case ENFILE:
      return "; the system has no descriptors left: raise fs.file-max, or end programs that hold "
             "many";
    case ENOMEM:
    case ENOBUFS:
      return "; free memory, or raise the limits of memory (ulimit -v, memory.max of the cgroup)";
    case ENOSPC:
    case EDQUOT:
      return "; make room in shared memory (df /dev/shm, --shm-size of the container)";
    case ETOOMANYREFS:
      return "; too many descriptors are under way between processes of this user: raise the limit "
             "of open files (ulimit -n)";
    case EPERM:
    case EACCES:
    case ENOSYS:
      return "; a seccomp filter or a security module forbids it: allow it in the profile of the "
             "container or service";
    default:
      return "";
  }
}

std::string why(const Trouble& trouble) {
  return std::string(trouble.call) + ": " + std::strerror(-trouble.rc) + remedy_of(trouble.rc);
}

int fail(std::string* error, int rc, const std::string& text) {
  *error = text + ": " + std::strerror(-rc);
  return rc;
}

bool is_shortage(int rc) {
  constexpr int kShortages[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS,
                                ENOSPC, EDQUOT, EAGAIN, ETOOMANYREFS};
  return std::ranges::find(kShortages, -rc) != std::end(kShortages);
}

}  // namespace rio::base
