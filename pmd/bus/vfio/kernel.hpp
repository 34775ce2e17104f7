/// @file
/// Every call of pmd/bus/vfio into the kernel, so that tests can replace it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bus_error.hpp"
#include "base/fork.hpp"

namespace rio::pmd::vfio {

/// Roots of the file trees that are read; a test gives temporary folders.
struct PciPaths {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

/// System calls that return the result or -errno. Control path, one thread.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Open a file. @return a descriptor, which the caller closes, or -errno.
  [[nodiscard]] virtual int open(const std::string& path, int flags) = 0;
  virtual void close(int fd) = 0;
  /// @return what the request returns (0 or more), or -errno.
  [[nodiscard]] virtual int ioctl(int fd, unsigned long request, void* arg) = 0;
  /// An ioctl with a number. @param arg passed as is (VFIO_SET_IOMMU, VFIO_CHECK_EXTENSION).
  [[nodiscard]] virtual int ioctl(int fd, unsigned long request, unsigned long arg) = 0;
  /// Map memory. @param out set on success. @return 0 or -errno.
  [[nodiscard]] virtual int mmap(void* hint, size_t len_bytes, int prot, int flags, int fd,
                                 uint64_t offset_bytes, void** out) = 0;
  virtual void munmap(void* va, size_t len_bytes) = 0;
  /// Like pread and pwrite. @return bytes or -errno.
  [[nodiscard]] virtual ssize_t read(int fd, void* to, size_t len_bytes, uint64_t offset_bytes) = 0;
  [[nodiscard]] virtual ssize_t write(int fd, const void* from, size_t len_bytes,
                                      uint64_t offset_bytes) = 0;
  /// Read a link. @return 0 or -errno.
  [[nodiscard]] virtual int readlink(const std::string& path, std::string* out) = 0;
  /// Create a file for this user alone. @param path of a file system of hugepages: its memory is
  /// hugepages. @return a descriptor, which the caller closes, or -errno (-EEXIST).
  [[nodiscard]] virtual int create_file(const std::string& path, size_t len_bytes) = 0;
  /// Remove a file's name; its memory stays for those that have mapped it. @return 0 or -errno.
  [[nodiscard]] virtual int remove_file(const std::string& path) = 0;
  /// Lock an open file for this descriptor and its copies, as flock() does. @return 0 or -errno
  /// (-EWOULDBLOCK: another one holds the lock).
  [[nodiscard]] virtual int lock_file(int fd) = 0;
  /// Give pages of a file back to the system; no process has them mapped.
  virtual void drop_pages(int fd, uint64_t offset_bytes, size_t len_bytes) = 0;
  /// A nonblocking eventfd. @return file descriptor or -errno.
  [[nodiscard]] virtual int eventfd() = 0;
  /// Copy another process's file descriptor; the caller closes the copy. @return a descriptor or
  /// -errno (-EPERM: no right to trace that process, -ENOSYS: a kernel before 5.6).
  [[nodiscard]] virtual int copy_fd(int pid, int fd) = 0;
  /// Let a millisecond pass.
  virtual void nap() = 0;
};

/// The kernel that runs us.
[[nodiscard]] Kernel& real_kernel();

/// A file descriptor of a Kernel, closed by the destructor, and in children at the fork: the kernel
/// gives a device back when the last process has closed it, and a lock likewise. base::Fd is one of
/// this process.
class KernelFd {
 public:
  KernelFd() = default;
  KernelFd(Kernel& kernel, int fd) : kernel_(&kernel), fd_(fd) { base::release_fd_in_child(fd); }
  KernelFd(KernelFd&& other) noexcept : kernel_(other.kernel_), fd_(std::exchange(other.fd_, -1)) {}
  KernelFd& operator=(KernelFd&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~KernelFd() {
    if (fd_ >= 0) {
      kernel_->close(release());
    }
  }

  /// The descriptor. @return -1: the object is empty.
  [[nodiscard]] int get() const { return fd_; }
  /// Give the descriptor to the caller.
  [[nodiscard]] int release() {
    base::forget_fd_in_child(fd_);
    return std::exchange(fd_, -1);
  }

 private:
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
};

/// A device's memory that a Kernel has mapped from a file, unmapped by the destructor. If the
/// device vanishes, it reads all ones for programs that have called base::catch_bus_errors(); so it
/// does for forked children, as the BAR of a card that is gone.
class KernelMapping {
 public:
  KernelMapping() = default;
  KernelMapping(KernelMapping&& other) noexcept { *this = std::move(other); }
  KernelMapping& operator=(KernelMapping&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(va_, other.va_);
    std::swap(len_bytes_, other.len_bytes_);
    std::swap(range_, other.range_);
    return *this;
  }
  ~KernelMapping() {
    range_ = {};  // before other memory can be there
    if (va_ != nullptr) {
      base::forget_in_child(va_);
      kernel_->munmap(va_, len_bytes_);
    }
  }

  /// Map a file, shared. Call once. @param kernel outlives the object. @return 0 or -errno.
  [[nodiscard]] int map(Kernel& kernel, size_t len_bytes, int prot, int fd, uint64_t offset_bytes);
  [[nodiscard]] void* va() const { return va_; }
  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }

 private:
  Kernel* kernel_ = nullptr;
  void* va_ = nullptr;
  size_t len_bytes_ = 0;
  base::BusErrorRange range_;
};

/// Read a small text file (sysfs, proc), without the final newline. Never blocks. @return 0; -EFBIG
/// (longer than 64 MiB), -ESPIPE (a pipe), or another -errno.
[[nodiscard]] int read_text(const std::string& path, std::string* out,
                            Kernel& kernel = real_kernel());

/// Write a small text file (sysfs). @return 0 or -errno.
[[nodiscard]] int write_text(const std::string& path, const std::string& text,
                             Kernel& kernel = real_kernel());

/// Last part of a link's target: the driver bound to a device, or the number of its IOMMU group.
/// @return 0 or -errno (-ENOENT: no driver, no group; -EINVAL: not a link).
[[nodiscard]] int link_name(const std::string& path, std::string* out,
                            Kernel& kernel = real_kernel());

}  // namespace rio::pmd::vfio
