/// @file
/// The folder in which programs of one user meet, and nobody else.
#pragma once

#include <sys/stat.h>

#include <string>

namespace rio::sim {

/// $RIO_RUNTIME_DIR, or else /dev/shm.
[[nodiscard]] std::string runtime_base();

/// "riopmd-UID", the user's folder in runtime_base().
[[nodiscard]] std::string user_folder_name();

/// Whether a folder is of this user alone. @param info of lstat() or fstat(). @param path for
/// `error`, which gets what is wrong and what to do. @return 0, -ENOTDIR, -EPERM.
[[nodiscard]] int check_own_folder(const struct stat& info, const std::string& path,
                                   std::string* error);

}  // namespace rio::sim
