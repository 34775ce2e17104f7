#include "pmd/bus/vfio/kernel.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace rio::pmd::vfio {
namespace {

constexpr size_t kTextBytesMax = size_t{64} << 20;

class RealKernel : public Kernel {
 public:
  int open(const std::string& path, int flags) override {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
  }
  void close(int fd) override { ::close(fd); }
  int ioctl(int fd, unsigned long request, void* arg) override {
    const int rc = ::ioctl(fd, request, arg);
    return rc < 0 ? -errno : rc;
  }
  int ioctl(int fd, unsigned long request, unsigned long arg) override {
    const int rc = ::ioctl(fd, request, arg);
    return rc < 0 ? -errno : rc;
  }
  int mmap(void* hint, size_t len_bytes, int prot, int flags, int fd, uint64_t offset_bytes,
           void** out) override {
    void* va = ::mmap(hint, len_bytes, prot, flags, fd, static_cast<off_t>(offset_bytes));
    if (va == MAP_FAILED) {
      return -errno;
    }
    *out = va;
    return 0;
  }
  void munmap(void* va, size_t len_bytes) override { ::munmap(va, len_bytes); }
  ssize_t read(int fd, void* to, size_t len_bytes, uint64_t offset_bytes) override {
    const ssize_t n = ::pread(fd, to, len_bytes, static_cast<off_t>(offset_bytes));
    return n < 0 ? -errno : n;
  }
  ssize_t write(int fd, const void* from, size_t len_bytes, uint64_t offset_bytes) override {
    const ssize_t n = ::pwrite(fd, from, len_bytes, static_cast<off_t>(offset_bytes));
    return n < 0 ? -errno : n;
  }
  int readlink(const std::string& path, std::string* out) override {
    char target[PATH_MAX];
    const ssize_t n = ::readlink(path.c_str(), target, sizeof(target));
    if (n < 0) {
      return -errno;
    }
    out->assign(target, static_cast<size_t>(n));
    return 0;
  }
  int hugepage_file(size_t len_bytes) override {
    const int fd = ::memfd_create("riopmd", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
    if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(len_bytes)) == 0) {
      return fd;
    }
    const int rc = -errno;
    if (fd >= 0) {
      ::close(fd);
    }
    return rc;
  }
  void drop_pages(int fd, uint64_t offset_bytes, size_t len_bytes) override {
    // Where this fails the pages stay taken until the file's last mapping goes.
    static_cast<void>(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(offset_bytes), static_cast<off_t>(len_bytes)));
  }
  int eventfd() override {
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
  }
  int copy_fd(int pid, int fd) override {
    const KernelFd process(*this, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (process.get() < 0) {
      return -errno;
    }
    const long copy = ::syscall(SYS_pidfd_getfd, process.get(), fd, 0);
    return copy < 0 ? -errno : static_cast<int>(copy);
  }
};

}  // namespace

Kernel& real_kernel() {
  static RealKernel kernel;
  return kernel;
}

int read_text(Kernel& kernel, const std::string& path, std::string* out) {
  // A pipe, which a copy of a system may have in a file's place, must not hold us.
  const int fd = kernel.open(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) {
    return fd;
  }
  const KernelFd closer(kernel, fd);
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t n = kernel.read(fd, part, sizeof(part), text.size());
    if (n < 0) {
      return static_cast<int>(n);
    }
    if (n == 0) {
      break;
    }
    text.append(part, static_cast<size_t>(n));
    if (text.size() > kTextBytesMax) {
      return -EFBIG;
    }
  }
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  *out = std::move(text);
  return 0;
}

int write_text(Kernel& kernel, const std::string& path, const std::string& text) {
  const int fd = kernel.open(path, O_WRONLY | O_TRUNC);
  if (fd < 0) {
    return fd;
  }
  const KernelFd closer(kernel, fd);
  const ssize_t n = kernel.write(fd, text.data(), text.size(), 0);
  return n < 0 ? static_cast<int>(n) : (static_cast<size_t>(n) == text.size() ? 0 : -EIO);
}

int link_name(Kernel& kernel, const std::string& path, std::string* out) {
  std::string target;
  if (const int rc = kernel.readlink(path, &target); rc != 0) {
    return rc;
  }
  *out = target.substr(target.rfind('/') + 1);  // npos + 1 is 0: no slash, all of it
  return 0;
}

}  // namespace rio::pmd::vfio
