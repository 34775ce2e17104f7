/// @file
/// Every call that pmd/bus/vfio makes into the kernel, so that tests can stand in its place.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace rio::pmd::vfio {

/// Roots of the trees that are looked at; a test gives temporary folders.
struct PciPaths {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

/// System calls with results as value or -errno. Control path, one thread.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// @return file descriptor, the caller closes it, or -errno.
  [[nodiscard]] virtual int open(const std::string& path, int flags) = 0;
  virtual void close(int fd) = 0;
  /// @return what the request returns (0 or more), or -errno.
  [[nodiscard]] virtual int ioctl(int fd, unsigned long request, void* arg) = 0;
  /// @param arg passed as it is (VFIO_SET_IOMMU, VFIO_CHECK_EXTENSION).
  [[nodiscard]] virtual int ioctl(int fd, unsigned long request, unsigned long arg) = 0;
  /// @param out set on success. @return 0 or -errno.
  [[nodiscard]] virtual int mmap(void* hint, size_t len_bytes, int prot, int flags, int fd,
                                 uint64_t offset_bytes, void** out) = 0;
  virtual void munmap(void* va, size_t len_bytes) = 0;
  /// Like pread and pwrite. @return bytes or -errno.
  [[nodiscard]] virtual ssize_t read(int fd, void* to, size_t len_bytes, uint64_t offset_bytes) = 0;
  [[nodiscard]] virtual ssize_t write(int fd, const void* from, size_t len_bytes,
                                      uint64_t offset_bytes) = 0;
  /// @return 0 or -errno.
  [[nodiscard]] virtual int readlink(const std::string& path, std::string* out) = 0;
  /// A file without a name whose memory is hugepages of 2 MiB. @param len_bytes a multiple of that.
  /// @return file descriptor or -errno (-ENOSYS, -EINVAL: this kernel has no such files).
  [[nodiscard]] virtual int hugepage_file(size_t len_bytes) = 0;
  /// Give pages of such a file back to the system; no process has them mapped.
  virtual void drop_pages(int fd, uint64_t offset_bytes, size_t len_bytes) = 0;
  /// A nonblocking eventfd. @return file descriptor or -errno.
  [[nodiscard]] virtual int eventfd() = 0;
  /// A copy of another process's file descriptor; the caller closes it. @return file descriptor or
  /// -errno (-EPERM: no right to trace that process, -ENOSYS: a kernel before 5.6).
  [[nodiscard]] virtual int copy_fd(int pid, int fd) = 0;
};

/// The kernel that runs us.
[[nodiscard]] Kernel& real_kernel();

/// A file descriptor of a Kernel, which closes it when the object is destroyed. base::Fd is one of
/// the process.
class KernelFd {
 public:
  KernelFd() = default;
  KernelFd(Kernel& kernel, int fd) : kernel_(&kernel), fd_(fd) {}
  KernelFd(KernelFd&& other) noexcept : kernel_(other.kernel_), fd_(std::exchange(other.fd_, -1)) {}
  KernelFd& operator=(KernelFd&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~KernelFd() {
    if (fd_ >= 0) {
      kernel_->close(fd_);
    }
  }

  /// @return -1 on an empty object.
  [[nodiscard]] int get() const { return fd_; }

 private:
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
};

/// Read a small text file (sysfs, proc), without the line's end. Never blocks.
/// @return 0; -EFBIG (64 MiB are not all of it), -ESPIPE (a pipe), or another -errno.
[[nodiscard]] int read_text(Kernel& kernel, const std::string& path, std::string* out);

/// Write a small text file (sysfs). @return 0 or -errno.
[[nodiscard]] int write_text(Kernel& kernel, const std::string& path, const std::string& text);

/// Last part of a link's target: the driver bound to a device, the number of its IOMMU group.
/// @return 0 or -errno (-ENOENT: no driver, no group).
[[nodiscard]] int link_name(Kernel& kernel, const std::string& path, std::string* out);

}  // namespace rio::pmd::vfio
