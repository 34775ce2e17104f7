#include "lib/rail/rail_policy.hpp"

#include <array>

#include "base/formatted.hpp"
#include "base/number.hpp"

namespace rio::rail {
namespace {

// In the order of RailPolicy.
constexpr std::array<std::string_view, 4> kNames{"static", "unidirectional", "dynamic", "weighted"};

}  // namespace

int parse_rail_policy(std::string_view text, RailPolicy* out, std::string* error) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) {
      *out = static_cast<RailPolicy>(i);
      return 0;
    }
  }
  return base::fail(error,
                    "rails: '%s' is no policy; use weighted, dynamic, static or unidirectional",
                    base::printable(text).c_str());
}

std::string_view to_string(RailPolicy policy) {
  return kNames[static_cast<size_t>(policy)];
}

}  // namespace rio::rail
