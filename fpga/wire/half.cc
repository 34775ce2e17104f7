#include "fpga/wire/half.hpp"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/no_cancel.hpp"
#include "base/shared_memory.hpp"

namespace rio::wire {
namespace {

constexpr std::chrono::milliseconds kStoresAreSeen{1};  // a CPU keeps a store for nanoseconds only

[[nodiscard]] bool membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

// Forked children do not get the memory: a child must not free space in rings that its parent
// reads, nor write to them, whatever it does with inherited objects.
bool Half::map_at(int protection, const base::Fd& fd) {
  void* const at = base::map_shared(nullptr, kHalfBytes, protection, MAP_SHARED | MAP_POPULATE,
                                    fd.get(), base::ChildFinds::kZeros);
  at_.reset(at == MAP_FAILED ? nullptr : static_cast<uint8_t*>(at));
  return at_ != nullptr;
}

base::Trouble Half::create(Half* out, base::Fd* fd) {
  base::Fd made(memfd_create("riopmd-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.valid()) {
    return base::failed("memfd_create");
  }
  // fallocate, so that a lack of memory is reported here, and not by a signal later.
  if (ftruncate(made.get(), kHalfBytes) != 0) {
    return base::failed("ftruncate of shared memory");
  }
  if (fallocate(made.get(), 0, 0, kHalfBytes) != 0) {
    return base::failed("fallocate of shared memory");
  }
  Half half;
  if (!half.map_at(PROT_READ | PROT_WRITE, made)) {
    return base::failed("mmap of shared memory");
  }
  // After the mapping, which alone may write.
  if (fcntl(made.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | base::kSealFutureWrite | F_SEAL_SEAL) != 0) {
    return base::failed("fcntl(F_ADD_SEALS)");
  }
  *out = std::move(half);
  *fd = std::move(made);
  return {};
}

base::Trouble Half::map(const base::Fd& fd, Half* out, bool* sound) {
  if (const base::Trouble trouble = base::check_lasting(fd, kHalfBytes, sound);
      trouble || !*sound) {
    return trouble;
  }
  *sound = false;
  Half half;
  if (!half.map_at(PROT_READ, fd)) {
    return base::failed("mmap of shared memory");
  }
  *sound = true;
  *out = std::move(half);
  return {};
}

void Half::set_asleep(bool asleep) const {
  heads()->requests.asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
  heads()->responses.asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
}

base::Trouble Joint::make(base::Fd* memory) {
  if (const base::Trouble trouble = Half::create(&mine, memory)) {
    return trouble;
  }
  bell = base::make_wake_fd();
  return bell.valid() ? base::Trouble{} : base::failed("eventfd");
}

base::Trouble Joint::take(std::vector<base::Fd>& fds, bool* sound) {
  *sound = false;
  if (fds.size() != 2) {
    return {};
  }
  their_bell = std::move(fds[1]);
  return Half::map(fds[0], &theirs, sound);
}

Rings::Rings(const Joint& joint)
    : bell(joint.their_bell.get()),
      their_heads(joint.theirs.heads()),
      out_requests(&their_heads->requests, joint.mine.requests(), kRequestRingBytes, &bell),
      out_responses(&their_heads->responses, joint.mine.responses(), kResponseRingBytes, &bell),
      in_requests(&joint.mine.heads()->requests, joint.theirs.requests(), kRequestRingBytes),
      in_responses(&joint.mine.heads()->responses, joint.theirs.responses(), kResponseRingBytes) {}

void Rings::ring_if_asleep() {
  if (their_heads->requests.asleep.load(std::memory_order_relaxed) != 0) {
    bell.ring();
  }
}

std::string let_others_see_us() {
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
             ? ""
             : "each sleep of the card takes a millisecond more: " +
                   base::why(base::failed("membarrier"));
}

void make_stores_seen() {
  if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {  // the kernel is old, or forbids it
    const base::NoCancel no_cancel;
    std::this_thread::sleep_for(kStoresAreSeen);
  }
}

}  // namespace rio::wire
