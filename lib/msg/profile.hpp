/// @file
/// Settings that rio-tune has measured on this machine, read when a port is opened. The file has
/// lines "name = value"; "#" begins a comment.
#pragma once

#include <cstdint>
#include <string>

namespace rio::msg {

struct Profile {
  static constexpr uint64_t kEagerMin = 256;
  static constexpr uint64_t kEagerMax = 1u << 20;
  static constexpr uint64_t kEagerUsual = 16384;  ///< without a profile

  /// Messages up to this length are sent at once, in several parts if need be. Longer ones go
  /// through dedicated queues once the receiver has granted them. kEagerMin to kEagerMax; 0: not
  /// measured.
  uint64_t eager_bytes = 0;
};

/// The default path: $RIO_PROFILE, else riopmd/profile in $XDG_CONFIG_HOME or ~/.config. @return
/// empty: there is none, or RIO_PROFILE is "none".
[[nodiscard]] std::string profile_path();

/// Load a profile; defaults if there is no file. @param path empty: profile_path(); "none": no
/// file. @return 0; or, logged: -ENOENT (a file that was named does not exist), -EINVAL (its
/// content), -errno of reading.
[[nodiscard]] int load_profile(const std::string& path, Profile* out);

/// Parse an untrusted text. @param name name of the text in the log. @return 0, -EINVAL (logged).
[[nodiscard]] int parse_profile(const std::string& text, const std::string& name, Profile* out);

/// Format a profile as the text of a file.
[[nodiscard]] std::string to_text(const Profile& profile);

}  // namespace rio::msg
