#include "base/fork.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

namespace rio::base {

/// All InChild objects of the process, in a list that needs no allocation.
class Children {
 public:
  static Children& get() {
    static auto* const kAll = new Children;  // outlives all static objects
    return *kAll;
  }

  std::mutex mutex;
  Fifo<InChild, &InChild::links_> all;

 private:
  Children() {
    pthread_atfork(
        [] {
          get().mutex.lock();
          get().run_all(&InChild::before_);
        },
        [] {
          get().run_all(&InChild::in_parent_);
          get().mutex.unlock();
        },
        [] {
          get().run_all(&InChild::run_);
          get().mutex.unlock();
        });
  }
  void run_all(const InChild::Run InChild::*which) const {
    all.for_each([&](const InChild& entry) {
      if (entry.*which != nullptr) {
        (entry.*which)(entry.ctx_);
      }
    });
  }
};

InChild::InChild(Run run, void* ctx, Run before, Run in_parent)
    : run_(run), before_(before), in_parent_(in_parent), ctx_(ctx) {
  const std::lock_guard lock(Children::get().mutex);
  Children::get().all.append(*this);
}

InChild::~InChild() {
  const std::lock_guard lock(Children::get().mutex);
  Children::get().all.remove(*this);
}

void release_in_child(int fd) {
  if (fd < 0) {
    return;
  }
  close(fd);  // before eventfd(): there may be no descriptor number left
  const int made = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (made >= 0 && made != fd) {
    dup3(made, fd, O_CLOEXEC);
    close(made);
  }
}

namespace {

struct Range {
  size_t len_bytes;
  ChildFinds child_finds;
  int fd;
};

/// Replace a range in the child.
void replace(void* at, const Range& range) {
  const bool is_copy = range.child_finds == ChildFinds::kCopy;
  if (mmap(at, range.len_bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_FIXED | (is_copy ? 0 : MAP_ANONYMOUS), is_copy ? range.fd : -1,
           0) == MAP_FAILED) {
    munmap(at, range.len_bytes);  // an access then kills the child, not its parent
  } else if (range.child_finds == ChildFinds::kOnes) {
    std::memset(at, 0xFF, range.len_bytes);
  }
}

struct Ranges {
  std::mutex mutex;
  std::map<void*, Range> all;
  // The thread that forks holds the mutex, so the child finds the map consistent.
  const InChild in_child{[](void* ctx) {
                           for (const auto& [at, range] : static_cast<Ranges*>(ctx)->all) {
                             replace(at, range);
                           }
                           static_cast<Ranges*>(ctx)->mutex.unlock();
                         },
                         this, [](void* ctx) { static_cast<Ranges*>(ctx)->mutex.lock(); },
                         [](void* ctx) { static_cast<Ranges*>(ctx)->mutex.unlock(); }};
};

Ranges& ranges() {
  static auto* const kAll = new Ranges;  // outlives all static objects
  return *kAll;
}

}  // namespace

void* map_shared(void* at, size_t len_bytes, int protection, int flags, int fd,
                 ChildFinds child_finds) {
  const std::lock_guard lock(ranges().mutex);  // held, so that no thread forks meanwhile
  void* const mapped = mmap(at, len_bytes, protection, flags, fd, 0);
  if (mapped != MAP_FAILED) {
    ranges().all[mapped] = {len_bytes, child_finds, fd};
  }
  return mapped;
}

void unmap_shared(void* at) {
  const std::lock_guard lock(ranges().mutex);
  if (const auto it = ranges().all.find(at); it != ranges().all.end()) {
    munmap(at, it->second.len_bytes);
    ranges().all.erase(it);
  }
}

void forget_in_child(void* at) {
  const std::lock_guard lock(ranges().mutex);
  ranges().all.erase(at);
}

}  // namespace rio::base
