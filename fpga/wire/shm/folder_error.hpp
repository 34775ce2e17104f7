/// @file
/// Errors of a fabric's folder, as text with the remedy. Any thread.
#pragma once

#include <string>

#include "base/fd.hpp"

namespace rio::wire::shm {

/// Report a failed call on a folder or on a file in it: "PATH cannot be WHAT". @param rc -errno.
/// @return rc.
[[nodiscard]] int fail_at(std::string* error, int rc, const std::string& path, const char* what);

/// Report a failed call on the folder that RIO_RUNTIME_DIR names, and advise to name another one.
/// @param rc -errno. @param what as for fail_at(). @return rc.
[[nodiscard]] int fail_at_base(std::string* error, int rc, const std::string& path,
                               const char* what);

/// Check that descriptors have names under /proc, through which sockets in the folder are reached.
/// @return 0, -errno.
[[nodiscard]] int check_proc(const base::Fd& folder, std::string* error);

}  // namespace rio::wire::shm
