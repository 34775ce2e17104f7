#include "lib/enumerate/ping.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "lib/enumerate/csr.hpp"

namespace rio::enumerate {

int ping(MaintAccess& access, uint32_t dest_id, uint32_t count, PingResult* out) {
  using Clock = std::chrono::steady_clock;
  PingResult result;
  double sum_us = 0.0;
  for (uint32_t i = 0; i < count; ++i) {
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

}  // namespace rio::enumerate
