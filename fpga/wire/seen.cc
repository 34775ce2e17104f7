#include "fpga/wire/seen.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/no_cancel.hpp"

namespace rio::wire {
namespace {

constexpr std::chrono::milliseconds kStoresAreSeen{1};  // a processor keeps one for nanoseconds

[[nodiscard]] bool membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

base::Trouble let_others_see_us() {
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) ? base::Trouble{}
                                                              : base::failed("membarrier");
}

std::string why_slow(const base::Trouble& trouble) {
  return "each sleep of the card takes a millisecond more: " + base::why(trouble);
}

void make_stores_seen() {
  if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {  // an old kernel, or it is forbidden
    const base::NoCancel no_cancel;
    std::this_thread::sleep_for(kStoresAreSeen);
  }
}

}  // namespace rio::wire
