#include "apps/tool/fabric/ping.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "apps/tool/fabric/csr.hpp"
#include "apps/tool/fabric/fabric_view.hpp"

namespace rio::tool::fabric {

int ping(MaintAccess& access, uint32_t dest_id, uint32_t count, PingResult* out) {
  using Clock = std::chrono::steady_clock;
  PingResult result;
  result.dest_id = dest_id;
  double sum_us = 0.0;
  for (; result.sent < count; ++result.sent) {
    const Clock::time_point start = Clock::now();
    const int rc = access.read({dest_id, kToEndpoint}, Csr::kDeviceIdentity, &result.identity);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (rc == -ETIMEDOUT || rc == -EIO || rc == -EAGAIN) {
      continue;
    }
    if (rc != 0) {
      return rc;
    }
    result.min_us = result.answered == 0 ? us : std::min(result.min_us, us);
    result.max_us = std::max(result.max_us, us);
    sum_us += us;
    ++result.answered;
  }
  result.mean_us = result.answered == 0 ? 0.0 : sum_us / result.answered;
  *out = result;
  return 0;
}

Json ping_json(const PingResult& result, bool is_model) {
  return {{"dest_id", result.dest_id},
          {"sent", result.sent},
          {"answered", result.answered},
          {"identity", result.answered > 0 ? Json(identity_text(result.identity)) : Json()},
          {"min_us", result.min_us},
          {"mean_us", result.mean_us},
          {"max_us", result.max_us},
          {"emulated", is_model}};
}

std::string ping_text(const PingResult& result, bool is_model) {
  const std::string name = "destID " + std::to_string(result.dest_id);
  std::string text = name + ": " + std::to_string(result.answered) + " of " +
                     std::to_string(result.sent) + " answered";
  if (result.answered == 0) {
    return text + "; see whether it was enumerated: rio-tool fabric\n";
  }
  std::array<char, 128> times{};
  std::snprintf(times.data(), times.size(), "; round trip min %.1f, mean %.1f, max %.1f us",
                result.min_us, result.mean_us, result.max_us);
  return text + " as " + identity_text(result.identity) + times.data() +
         (is_model ? " (emulated card)\n" : "\n");
}

}  // namespace rio::tool::fabric
