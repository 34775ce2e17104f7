/// @file
/// Say what a failed system call means, where it is this process that lacks something.
#pragma once

#include <cerrno>
#include <string>

namespace rio::base {

/// A system call that failed for a reason of this process's own; false: none did.
struct Trouble {
  const char* call = "";  ///< its name, static
  int rc = 0;             ///< -errno
  explicit operator bool() const { return rc != 0; }
};

/// The call that has just failed, with errno.
[[nodiscard]] inline Trouble failed(const char* call) {
  return {call, -errno};
}

/// A failed call with the remedy as far as it is known, for a log line: "memfd_create: Operation
/// not permitted; a seccomp filter or ...". Any thread.
[[nodiscard]] std::string why(const Trouble& trouble);

/// What to do about a failed call: "; raise the limit of open files (ulimit -n)", or "" if nothing
/// is known. @param rc -errno.
[[nodiscard]] const char* remedy_of(int rc);

/// Whether a failure may pass by itself: descriptors, memory or room are short. @param rc -errno.
[[nodiscard]] bool is_shortage(int rc);

}  // namespace rio::base
