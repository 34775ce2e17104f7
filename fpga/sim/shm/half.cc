#include "fpga/sim/shm/half.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace rio::sim::shm {
namespace {

/// All mappings of this process. A child that is forked must not give room back in rings that its
/// parent reads, or write there, whatever it does with the objects that it has inherited: it gets
/// memory of its own in their place.
class Mappings {
 public:
  static Mappings& get() {
    static auto* const kAll = new Mappings;  // outlives all that is static
    return *kAll;
  }
  /// @return null: no memory.
  [[nodiscard]] uint8_t* add(int protection, const Fd& fd) {
    const std::lock_guard lock(mutex_);
    void* const at = mmap(nullptr, kHalfBytes, protection, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
    if (at == MAP_FAILED) {
      return nullptr;
    }
    all_.insert(at);
    return static_cast<uint8_t*>(at);
  }
  void remove(void* at) {
    const std::lock_guard lock(mutex_);
    all_.erase(at);
    munmap(at, kHalfBytes);
  }

 private:
  Mappings() {
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().replace(); });
  }
  void replace() {
    for (void* const at : all_) {
      if (mmap(at, kHalfBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == MAP_FAILED) {
        munmap(at, kHalfBytes);
      }
    }
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::set<void*> all_;
};

}  // namespace

Half::~Half() {
  if (at_ != nullptr) {
    Mappings::get().remove(at_);
  }
}

Half::Half(Half&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}

Half& Half::operator=(Half&& other) noexcept {
  std::swap(at_, other.at_);
  return *this;
}

base::Trouble Half::create(Half* out, Fd* fd) {
  Fd made(memfd_create("riopmd-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.valid()) {
    return base::failed("memfd_create");
  }
  // fallocate: that there is no memory is said here, and not by a signal later on.
  if (ftruncate(made.get(), kHalfBytes) != 0) {
    return base::failed("ftruncate of shared memory");
  }
  if (fallocate(made.get(), 0, 0, kHalfBytes) != 0) {
    return base::failed("fallocate of shared memory");
  }
  Half half;
  half.at_ = Mappings::get().add(PROT_READ | PROT_WRITE, made);
  if (half.at_ == nullptr) {
    return base::failed("mmap of shared memory");
  }
  // Behind the mapping, which alone may be written.
  if (fcntl(made.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    return base::failed("fcntl(F_ADD_SEALS)");
  }
  *out = std::move(half);
  *fd = std::move(made);
  return {};
}

base::Trouble Half::map(const Fd& fd, Half* out, bool* sound) {
  *sound = false;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) {
    const bool theirs = errno == EINVAL || errno == EBADF;  // no memory, or one to be named only
    return theirs ? base::Trouble{} : base::failed("fcntl(F_GET_SEALS)");
  }
  struct stat info {};
  struct statfs kind {};
  if (fstat(fd.get(), &info) != 0 || fstatfs(fd.get(), &kind) != 0) {
    return base::failed("fstat of shared memory");
  }
  // A page that is taken away, or a huge one that cannot be had, would be a signal to us.
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
  if ((seals & kNeeded) != kNeeded || info.st_size != static_cast<off_t>(kHalfBytes) ||
      kind.f_type != TMPFS_MAGIC) {
    return {};
  }
  Half half;
  half.at_ = Mappings::get().add(PROT_READ, fd);
  if (half.at_ == nullptr) {
    return base::failed("mmap of shared memory");
  }
  *sound = true;
  *out = std::move(half);
  return {};
}

}  // namespace rio::sim::shm
