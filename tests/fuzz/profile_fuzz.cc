// Any bytes as a profile: it is refused, or its values are in range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/log.hpp"
#include "lib/msg/profile.hpp"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  rio::base::set_log_sink([](rio::base::LogLevel, const char*) noexcept {});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rio::msg::Profile;
  Profile profile;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const int rc = rio::msg::parse_profile(text, "fuzz", &profile);
  Profile again;
  const bool has_value = profile.eager_bytes != 0;
  if ((has_value &&
       (profile.eager_bytes < Profile::kEagerMin || profile.eager_bytes > Profile::kEagerMax)) ||
      (rc == 0 && has_value &&
       (rio::msg::parse_profile(to_text(profile), "again", &again) != 0 ||
        again.eager_bytes != profile.eager_bytes))) {
    std::abort();
  }
  return 0;
}
