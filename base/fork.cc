#include "base/fork.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>

namespace rio::base {

/// All InChild objects of the process, in a list that needs no allocation.
class Children {
 public:
  static Children& get() {
    static auto* const kAll = new Children;  // outlives all static objects
    return *kAll;
  }
  void add(InChild* entry) {
    const std::lock_guard lock(mutex_);
    all_.append(*entry);
  }
  void remove(InChild* entry) {
    const std::lock_guard lock(mutex_);
    all_.remove(*entry);
  }

 private:
  Children() {
    pthread_atfork(
        [] {
          get().mutex_.lock();
          get().run_all(&InChild::before_);
        },
        [] {
          get().run_all(&InChild::in_parent_);
          get().mutex_.unlock();
        },
        [] {
          get().run_all(&InChild::run_);
          get().mutex_.unlock();
        });
  }
  void run_all(const InChild::Run InChild::*which) const {
    all_.for_each([&](const InChild& entry) {
      if (entry.*which != nullptr) {
        (entry.*which)(entry.ctx_);
      }
    });
  }

  std::mutex mutex_;
  Fifo<InChild, &InChild::links_> all_;
};

InChild::InChild(Run run, void* ctx, Run before, Run in_parent)
    : run_(run), before_(before), in_parent_(in_parent), ctx_(ctx) {
  Children::get().add(this);
}

InChild::~InChild() {
  Children::get().remove(this);
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

}  // namespace rio::base
