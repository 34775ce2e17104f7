#include "base/child_memory.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

namespace rio::base {
namespace {

struct Range {
  size_t len_bytes;
  InChild in_child;
  int fd;
};

class Ranges {
 public:
  static Ranges& get() {
    static auto* const kAll = new Ranges;  // outlives all that is static
    return *kAll;
  }

  void* map(void* at, const Range& range, int protection, int flags) {
    const std::lock_guard lock(mutex_);  // so that no child is forked in between
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
  Ranges() {
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().replace_all(); });
  }
  void replace_all() {
    for (const auto& [at, range] : all_) {
      replace(at, range);
    }
    mutex_.unlock();
  }
  static void replace(void* at, const Range& range) {
    const bool is_copy = range.in_child == InChild::kCopy;
    if (mmap(at, range.len_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | (is_copy ? 0 : MAP_ANONYMOUS), is_copy ? range.fd : -1,
             0) == MAP_FAILED) {
      munmap(at, range.len_bytes);  // an access is the child's end, and not its parent's
      return;
    }
    if (range.in_child == InChild::kOnes) {
      std::memset(at, 0xFF, range.len_bytes);
    }
  }

  std::mutex mutex_;
  std::map<void*, Range> all_;
};

}  // namespace

void* map_shared(void* at, size_t len_bytes, int protection, int flags, int fd, InChild in_child) {
  return Ranges::get().map(at, {len_bytes, in_child, fd}, protection, flags);
}

void unmap_shared(void* at) {
  Ranges::get().unmap(at);
}

void forget_in_child(void* at) {
  Ranges::get().remove(at);
}

}  // namespace rio::base
