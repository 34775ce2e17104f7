/// @file
/// What was measured on this machine, by rio-tune, and is read when a port is opened: a file of
/// lines "name = value", "#" begins a comment.
#pragma once

#include <cstdint>
#include <string>

namespace rio::msg {

struct Profile {
  static constexpr uint64_t kEagerMin = 256;
  static constexpr uint64_t kEagerMax = 1u << 20;

  /// Tagged messages up to so many bytes go at once, in several messages of the card if need be;
  /// longer ones are moved by dedicated queues once they are matched. kEagerMin to kEagerMax.
  uint64_t eager_bytes = 16384;
};

/// Where a profile is looked for: $RIO_PROFILE, else riopmd/profile in $XDG_CONFIG_HOME or
/// ~/.config. @return empty: there is no place, or RIO_PROFILE is "none".
[[nodiscard]] std::string profile_path();

/// The profile of a path, or of profile_path(), if there is one; else as it is by default.
/// @param path empty: profile_path(); "none": no file. @return 0; told in the log: -ENOENT (there
/// is no such file, and it was named), -EINVAL (what it says), -errno of reading.
[[nodiscard]] int load_profile(const std::string& path, Profile* out);

/// Foreign bytes as a profile. @param name what the log calls it. @return 0, -EINVAL (told).
[[nodiscard]] int parse_profile(const std::string& text, const std::string& name, Profile* out);

/// A profile as the text of its file.
[[nodiscard]] std::string to_text(const Profile& profile);

}  // namespace rio::msg
