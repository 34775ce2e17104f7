#include "lib/msg/profile.hpp"

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/log.hpp"
#include "base/number.hpp"
#include "base/text_file.hpp"

namespace rio::msg {
namespace {

constexpr size_t kFileMax = 4096;
constexpr const char* kRemedy = "run rio-tune again, or delete the file";
constexpr const char* kNone = "none";

[[nodiscard]] std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

[[nodiscard]] int read_line(std::string_view line, const std::string& name, uint32_t at,
                            Profile* out) {
  const std::string_view said = base::trimmed(line.substr(0, line.find('#')));
  if (said.empty()) {
    return 0;
  }
  const size_t equals = said.find('=');
  const std::string_view key = base::trimmed(said.substr(0, equals));
  if (equals == std::string_view::npos || key != "eager_bytes") {
    base::log_error("%s, line %u: \"%s\"; a line is \"eager_bytes = NUMBER\", or a comment; %s",
                    name.c_str(), at, base::printable(said).c_str(), kRemedy);
    return -EINVAL;
  }
  const std::string_view value = base::trimmed(said.substr(equals + 1));
  if (!base::read_bytes(value, Profile::kEagerMin, Profile::kEagerMax, &out->eager_bytes)) {
    base::log_error("%s, line %u: eager_bytes is \"%s\"; it is %llu to %llu; %s", name.c_str(), at,
                    base::printable(value).c_str(),
                    static_cast<unsigned long long>(Profile::kEagerMin),
                    static_cast<unsigned long long>(Profile::kEagerMax), kRemedy);
    return -EINVAL;
  }
  return 0;
}

}  // namespace

std::string profile_path() {
  if (const std::string named = from_environment("RIO_PROFILE"); !named.empty()) {
    return named == kNone ? "" : named;
  }
  std::string folder = from_environment("XDG_CONFIG_HOME");
  if (folder.empty()) {
    folder = from_environment("HOME");
    if (folder.empty()) {
      return "";
    }
    folder += "/.config";
  }
  return folder + "/riopmd/profile";
}

int parse_profile(const std::string& text, const std::string& name, Profile* out) {
  if (text.size() > kFileMax) {
    base::log_error("%s: more than %zu bytes, so not a profile; %s", name.c_str(), kFileMax,
                    kRemedy);
    return -EINVAL;
  }
  Profile profile;
  std::string_view left = text;
  for (uint32_t at = 1; !left.empty(); ++at) {
    const size_t end = left.find('\n');
    if (const int rc = read_line(left.substr(0, end), name, at, &profile); rc != 0) {
      return rc;
    }
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  *out = profile;
  return 0;
}

int load_profile(const std::string& path, Profile* out) {
  const std::string chosen = path.empty() ? profile_path() : path;
  if (chosen.empty() || chosen == kNone) {
    *out = {};
    return 0;
  }
  std::string text;
  std::string error;
  if (const int rc = base::read_text_file(chosen, kFileMax, &text, &error); rc != 0) {
    // A profile that the user did not name may be missing.
    const bool is_there = rc == -EISDIR || rc == -EFBIG || rc == -EILSEQ;
    if (!is_there && path.empty() && from_environment("RIO_PROFILE").empty()) {
      *out = {};
      return 0;
    }
    base::log_error("profile: %s; create one with rio-tune --output, or set RIO_PROFILE=none",
                    error.c_str());
    return rc;
  }
  return parse_profile(text, chosen, out);
}

std::string to_text(const Profile& profile) {
  return "eager_bytes = " + std::to_string(profile.eager_bytes) + "\n";
}

}  // namespace rio::msg
