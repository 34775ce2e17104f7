#include "base/child_memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "base/fork.hpp"

namespace rio::base {
namespace {

struct Range {
  size_t len_bytes;
  ChildFinds child_finds;
  int fd;
};

class Ranges {
 public:
  static Ranges& get() {
    static auto* const kAll = new Ranges;  // outlives all static objects
    return *kAll;
  }

  void* map(void* at, const Range& range, int protection, int flags) {
    const std::lock_guard lock(mutex_);  // held, so that no thread forks meanwhile
    void* const mapped = mmap(at, range.len_bytes, protection, flags, range.fd, 0);
    if (mapped != MAP_FAILED) {
      all_[mapped] = range;
    }
    return mapped;
  }
  void unmap(void* at) {
    const std::lock_guard lock(mutex_);
    if (const auto it = all_.find(at); it != all_.end()) {
      munmap(at, it->second.len_bytes);
      all_.erase(it);
    }
  }
  void remove(void* at) {
    const std::lock_guard lock(mutex_);
    all_.erase(at);
  }

 private:
  Ranges() = default;
  void replace_all() {
    for (const auto& [at, range] : all_) {
      replace(at, range);
    }
    mutex_.unlock();
  }
  static void replace(void* at, const Range& range) {
    const bool is_copy = range.child_finds == ChildFinds::kCopy;
    if (mmap(at, range.len_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | (is_copy ? 0 : MAP_ANONYMOUS), is_copy ? range.fd : -1,
             0) == MAP_FAILED) {
      munmap(at, range.len_bytes);  // an access then kills the child, not its parent
      return;
    }
    if (range.child_finds == ChildFinds::kOnes) {
      std::memset(at, 0xFF, range.len_bytes);
    }
  }

  std::mutex mutex_;
  std::map<void*, Range> all_;
  // The thread that forks holds the mutex, so the child finds the map consistent.
  const InChild in_child_{[](void* ctx) { static_cast<Ranges*>(ctx)->replace_all(); }, this,
                          [](void* ctx) { static_cast<Ranges*>(ctx)->mutex_.lock(); },
                          [](void* ctx) { static_cast<Ranges*>(ctx)->mutex_.unlock(); }};
};

}  // namespace

void* map_shared(void* at, size_t len_bytes, int protection, int flags, int fd,
                 ChildFinds child_finds) {
  return Ranges::get().map(at, {len_bytes, child_finds, fd}, protection, flags);
}

void unmap_shared(void* at) {
  Ranges::get().unmap(at);
}

void forget_in_child(void* at) {
  Ranges::get().remove(at);
}

}  // namespace rio::base
