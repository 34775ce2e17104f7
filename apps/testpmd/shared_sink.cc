#include "apps/testpmd/shared_sink.hpp"

#include <rte_cycles.h>

namespace rio::testpmd {

uint32_t SharedSink::check(const pmd::RxMessage* messages, uint32_t n) noexcept {
  uint32_t good = 0;
  if (verifier_.verifies()) {
    const uint64_t now = rte_rdtsc();
    for (uint32_t i = 0; i < n; ++i) {
      good += take_message(messages[i], pool_.va(messages[i].cookie), expected_flow_, now,
                           verifier_, owner_)
                  ? 1
                  : 0;
    }
    return good;
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (messages[i].status == pmd::Status::kOk) [[likely]] {
      ++good;
    } else {
      owner_.stats.count_status(messages[i].status);
    }
  }
  return good;
}

uint32_t SharedSink::turn() noexcept {
  const uint32_t n = queue_.burst(messages_, burst_);
  if (n == 0) {
    return 0;
  }
  const uint32_t good = check(messages_, n);
  for (uint32_t i = 0; i < n; ++i) {
    buffers_[i] = {.iova = messages_[i].cookie, .cookie = messages_[i].cookie};
  }
  const uint32_t posted = queue_.post(buffers_, static_cast<uint16_t>(n));
  port_.shared_posted -= n - posted;
  if (!verifier_.verifies() && good != 0) {
    port_.probe.received(good, rte_rdtsc, &owner_.latency);
  }
  owner_.stats.rx_messages.add(good);
  owner_.stats.rx_bytes.add(uint64_t{good} * size_bytes_);
  return n;
}

}  // namespace rio::testpmd
