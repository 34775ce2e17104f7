#include "base/fork.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

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
  const InChild* innermost = nullptr;  // its lock is taken by threads that hold those of others

 private:
  Children() {
    pthread_atfork(
        [] {
          get().mutex.lock();
          get().run_all_before();
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
    all.for_each([&](const InChild& entry) { run(entry, which); });
  }
  void run_all_before() const {
    all.for_each([&](const InChild& entry) {
      if (&entry != innermost) {
        run(entry, &InChild::before_);
      }
    });
    if (innermost != nullptr) {
      run(*innermost, &InChild::before_);
    }
  }
  static void run(const InChild& entry, const InChild::Run InChild::*which) {
    if (entry.*which != nullptr) {
      (entry.*which)(entry.ctx_);
    }
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

/// Everything that a child must not have of its parent's.
struct Inherited {
  std::mutex mutex;
  std::map<void*, Range> ranges;
  std::multiset<int> fds;
  std::map<uintptr_t, int> pages;  // from here to the next key: how many NotInherited cover them
  // The thread that forks holds the mutex, so the child finds all of it consistent.
  const InChild in_child{[](void* ctx) {
                           auto* const self = static_cast<Inherited*>(ctx);
                           for (const auto& [at, range] : self->ranges) {
                             replace(at, range);
                           }
                           for (const int fd : self->fds) {
                             release_in_child(fd);
                           }
                           self->mutex.unlock();
                         },
                         this, [](void* ctx) { static_cast<Inherited*>(ctx)->mutex.lock(); },
                         [](void* ctx) { static_cast<Inherited*>(ctx)->mutex.unlock(); }};
};

Inherited& inherited() {
  static auto* const kAll = [] {
    auto* const made = new Inherited;  // outlives all static objects
    Children::get().innermost = &made->in_child;
    return made;
  }();
  return *kAll;
}

/// Let `more` objects more, or fewer, cover pages.
void cover(uintptr_t begin, uintptr_t end, int more) {
  const std::lock_guard lock(inherited().mutex);
  std::map<uintptr_t, int>& pages = inherited().pages;
  for (const uintptr_t border : {begin, end}) {
    const auto next = pages.upper_bound(border);
    pages.emplace(border, next == pages.begin() ? 0 : std::prev(next)->second);
  }
  for (auto it = pages.find(begin); it->first != end; ++it) {
    const bool was_covered = it->second != 0;
    it->second += more;
    if (was_covered != (it->second != 0)) {
      static_cast<void>(madvise(reinterpret_cast<void*>(it->first),
                                std::next(it)->first - it->first,
                                was_covered ? MADV_DOFORK : MADV_DONTFORK));
    }
  }
  for (const uintptr_t border : {begin, end}) {  // borders between equal counts
    const auto it = pages.find(border);
    if (it->second == (it == pages.begin() ? 0 : std::prev(it)->second)) {
      pages.erase(it);
    }
  }
}

}  // namespace

void* map_shared(void* at, size_t len_bytes, int protection, int flags, int fd,
                 ChildFinds child_finds) {
  const std::lock_guard lock(inherited().mutex);  // held, so that no thread forks meanwhile
  void* const mapped = mmap(at, len_bytes, protection, flags, fd, 0);
  if (mapped != MAP_FAILED) {
    inherited().ranges[mapped] = {len_bytes, child_finds, fd};
  }
  return mapped;
}

void unmap_shared(void* at) {
  const std::lock_guard lock(inherited().mutex);
  std::map<void*, Range>& ranges = inherited().ranges;
  if (const auto it = ranges.find(at); it != ranges.end()) {
    munmap(at, it->second.len_bytes);
    ranges.erase(it);
  }
}

void replace_in_child(void* at, size_t len_bytes, ChildFinds child_finds) {
  const std::lock_guard lock(inherited().mutex);
  inherited().ranges[at] = {len_bytes, child_finds, -1};
}

void forget_in_child(void* at) {
  const std::lock_guard lock(inherited().mutex);
  inherited().ranges.erase(at);
}

void release_fd_in_child(int fd) {
  if (fd >= 0) {
    const std::lock_guard lock(inherited().mutex);
    inherited().fds.insert(fd);
  }
}

void forget_fd_in_child(int fd) {
  const std::lock_guard lock(inherited().mutex);
  std::multiset<int>& fds = inherited().fds;
  if (const auto it = fds.find(fd); it != fds.end()) {
    fds.erase(it);
  }
}

NotInherited::NotInherited(void* va, size_t len_bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  begin_ = (reinterpret_cast<uintptr_t>(va) + page - 1) & ~(page - 1);
  end_ = (reinterpret_cast<uintptr_t>(va) + len_bytes) & ~(page - 1);
  if (begin_ < end_) {
    cover(begin_, end_, 1);
  }
}

NotInherited::~NotInherited() {
  if (begin_ < end_) {
    cover(begin_, end_, -1);
  }
}

}  // namespace rio::base
