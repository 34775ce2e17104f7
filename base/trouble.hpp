/// @file
/// Explain a failed system call where this process lacks a resource or a permission.
#pragma once

#include <cerrno>
#include <string>

namespace rio::base {

/// A system call that failed because of this process itself; false: none failed.
struct Trouble {
  const char* call = "";  ///< its name, static
  int rc = 0;             ///< -errno
  explicit operator bool() const { return rc != 0; }
};

/// The call that has just failed, with errno.
[[nodiscard]] inline Trouble failed(const char* call) {
  return {call, -errno};
}

/// Explain a failed call, with the remedy if one is known, for a log line: "memfd_create: Operation
/// not permitted; a seccomp filter or ...". Any thread.
[[nodiscard]] std::string why(const Trouble& trouble);

/// The remedy for a failed call: "; raise the limit of open files (ulimit -n)", or "" if none is
/// known. @param rc -errno.
[[nodiscard]] const char* remedy_of(int rc);

/// Set `error` to "TEXT: Operation not permitted". @param rc -errno. @return rc.
[[nodiscard]] int fail(std::string* error, int rc, const std::string& text);

/// Whether a failure may pass by itself: descriptors, memory or space are short. @param rc -errno.
[[nodiscard]] bool is_shortage(int rc);

}  // namespace rio::base
