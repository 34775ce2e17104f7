#include "apps/sim/skew.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/formatted.hpp"
#include "base/number.hpp"

namespace rio::simapp {
namespace {

constexpr std::array<std::pair<std::string_view, SkewKind>, 3> kKinds{
    {{"uniform", SkewKind::kUniform},
     {"exponential", SkewKind::kExponential},
     {"one-late", SkewKind::kOneLate}}};
constexpr double kLongestMeans = 40.0;

/// Uniform in 0 to ns, both included.
uint64_t uniform_ns(uint64_t ns, base::Random& random) {
  return random.next() % (ns + 1);
}

uint64_t exponential_ns(uint64_t mean_ns, base::Random& random) {
  const double share = static_cast<double>((random.next() >> 11) + 1) * 0x1p-53;  // above 0
  const double means = std::min(-std::log(share), kLongestMeans);
  return static_cast<uint64_t>(std::llround(means * static_cast<double>(mean_ns)));
}

}  // namespace

int Skew::parse(std::string_view text, Skew* out, std::string* error) {
  if (text == "none") {
    *out = {};
    return 0;
  }
  const size_t colon = text.find(':');
  for (const auto& [name, kind] : kKinds) {
    if (text.substr(0, colon) != name) {
      continue;
    }
    uint64_t ns = 0;
    if (colon == std::string_view::npos ||
        !base::read_number(text.substr(colon + 1), 0, kNsMax, &ns)) {
      return base::fail(error, "skew '%s': give a time in ns, up to an hour, as in %s:2000",
                        base::printable(text).c_str(), std::string(name).c_str());
    }
    *out = {kind, ns};
    return 0;
  }
  return base::fail(error,
                    "skew '%s': no such kind; give none, uniform:NS, exponential:NS or one-late:NS",
                    base::printable(text).c_str());
}

std::string Skew::text() const {
  for (const auto& [name, named] : kKinds) {
    if (named == kind) {
      return std::string(name) + ":" + std::to_string(ns);
    }
  }
  return "none";
}

std::vector<uint64_t> Skew::delays_ns(uint32_t members, base::Random& random) const {
  std::vector<uint64_t> delays;
  if (kind == SkewKind::kNone) {
    return delays;
  }
  delays.resize(members);
  if (kind == SkewKind::kOneLate) {
    delays[random.below(members)] = ns;
    return delays;
  }
  for (uint64_t& delay_ns : delays) {
    delay_ns = kind == SkewKind::kUniform ? uniform_ns(ns, random) : exponential_ns(ns, random);
  }
  return delays;
}

}  // namespace rio::simapp
