/// @file
/// The folder in which programs of one user meet, closed to all other users.
#pragma once

#include <sys/stat.h>

#include <string>

namespace rio::base {

/// $RIO_RUNTIME_DIR, or else /dev/shm. Any thread.
[[nodiscard]] std::string runtime_base();

/// "riopmd-UID", the user's folder in runtime_base(). Any thread.
[[nodiscard]] std::string user_folder_name();

/// Check that a folder belongs to this user alone. Any thread.
/// @param info of lstat() or fstat().
/// @param path for `error`, which gets the cause and the remedy; set only on failure.
/// @return 0, -ENOTDIR, -EPERM.
[[nodiscard]] int check_own_folder(const struct stat& info, const std::string& path,
                                   std::string* error);

/// Report a failed call on the user's folder or on a file in it: "PATH cannot be WHAT", with the
/// remedy. @param rc -errno. @param in_base advise in any case to set RIO_RUNTIME_DIR. @return rc.
[[nodiscard]] int fail_at(std::string* error, int rc, const std::string& path, const char* what,
                          bool in_base = false);

/// Make the user's folder unless it exists, and check it. Any thread, control path only.
/// @param out its path; set only on success. @param error cause and remedy; set only on failure.
/// @return 0; errors of mkdir(), lstat() and check_own_folder().
[[nodiscard]] int make_user_folder(std::string* out, std::string* error);

}  // namespace rio::base
