#include "fpga/sim/shm/half.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace rio::sim::shm {

Half::~Half() {
  if (at_ != nullptr) {
    munmap(at_, kHalfBytes);
  }
}

Half::Half(Half&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}

Half& Half::operator=(Half&& other) noexcept {
  std::swap(at_, other.at_);
  return *this;
}

int Half::create(Half* out, Fd* fd) {
  Fd made(memfd_create("riopmd-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // fallocate: that there is no memory is said here, and not by a signal later on.
  if (!made.valid() || ftruncate(made.get(), kHalfBytes) != 0 ||
      fallocate(made.get(), 0, 0, kHalfBytes) != 0) {
    return -errno;
  }
  void* const at =
      mmap(nullptr, kHalfBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, made.get(), 0);
  if (at == MAP_FAILED) {
    return -errno;
  }
  Half half;
  half.at_ = static_cast<uint8_t*>(at);
  // Behind the mapping, which alone may be written.
  if (fcntl(made.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    return -errno;
  }
  *out = std::move(half);
  *fd = std::move(made);
  return 0;
}

int Half::map(const Fd& fd, Half* out) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat info {};
  struct statfs kind {};
  if (seals < 0 || fstat(fd.get(), &info) != 0 || fstatfs(fd.get(), &kind) != 0) {
    return -EPERM;
  }
  // A page that is taken away, or a huge one that cannot be had, would be a signal to us.
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
  if ((seals & kNeeded) != kNeeded || info.st_size != static_cast<off_t>(kHalfBytes) ||
      kind.f_type != TMPFS_MAGIC) {
    return -EPERM;
  }
  void* const at = mmap(nullptr, kHalfBytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (at == MAP_FAILED) {
    return -errno;
  }
  Half half;
  half.at_ = static_cast<uint8_t*>(at);
  *out = std::move(half);
  return 0;
}

}  // namespace rio::sim::shm
