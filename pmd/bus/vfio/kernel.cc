#include "pmd/bus/vfio/kernel.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace rio::pmd::vfio {
namespace {

constexpr size_t kTextBytesMax = size_t{64} << 20;

/// The result of a system call, or -errno.
template <class Result>
[[nodiscard]] Result or_error(Result result) {
  return result < 0 ? -errno : result;
}

class RealKernel : public Kernel {
 public:
  int open(const std::string& path, int flags) override {
    return or_error(::open(path.c_str(), flags | O_CLOEXEC));
  }
  void close(int fd) override { ::close(fd); }
  int ioctl(int fd, unsigned long request, void* arg) override {
    return or_error(::ioctl(fd, request, arg));
  }
  int ioctl(int fd, unsigned long request, unsigned long arg) override {
    return or_error(::ioctl(fd, request, arg));
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
    return or_error(::pread(fd, to, len_bytes, static_cast<off_t>(offset_bytes)));
  }
  ssize_t write(int fd, const void* from, size_t len_bytes, uint64_t offset_bytes) override {
    return or_error(::pwrite(fd, from, len_bytes, static_cast<off_t>(offset_bytes)));
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
  int create_file(const std::string& path, size_t len_bytes) override {
    KernelFd file(*this, ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() >= 0 && ::ftruncate(file.get(), static_cast<off_t>(len_bytes)) == 0) {
      return file.release();
    }
    const int rc = -errno;
    if (file.get() >= 0) {
      ::unlink(path.c_str());
    }
    return rc;
  }
  int remove_file(const std::string& path) override { return or_error(::unlink(path.c_str())); }
  int lock_file(int fd) override { return or_error(::flock(fd, LOCK_EX | LOCK_NB)); }
  void drop_pages(int fd, uint64_t offset_bytes, size_t len_bytes) override {
    // If this fails, the pages stay taken until the file's last mapping goes.
    static_cast<void>(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(offset_bytes), static_cast<off_t>(len_bytes)));
  }
  int eventfd() override { return or_error(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }
  int copy_fd(int pid, int fd) override {
    const KernelFd process(*this, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (process.get() < 0) {
      return -errno;
    }
    return static_cast<int>(or_error(::syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  }
  void nap() override { ::usleep(1000); }
};

}  // namespace

Kernel& real_kernel() {
  static RealKernel kernel;
  return kernel;
}

int KernelMapping::map(Kernel& kernel, size_t len_bytes, int prot, int fd, uint64_t offset_bytes) {
  const int rc = kernel.mmap(nullptr, len_bytes, prot, MAP_SHARED, fd, offset_bytes, &va_);
  if (rc == 0) {
    kernel_ = &kernel;
    len_bytes_ = len_bytes;
    range_ = base::BusErrorRange(va_, len_bytes);
    base::replace_in_child(va_, len_bytes_, base::ChildFinds::kOnes);
  }
  return rc;
}

int read_text(const std::string& path, std::string* out, Kernel& kernel) {
  // Nonblocking: a copy of a system may hold a pipe in a file's place.
  const KernelFd fd(kernel, kernel.open(path, O_RDONLY | O_NONBLOCK));
  if (fd.get() < 0) {
    return fd.get();
  }
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t n = kernel.read(fd.get(), part, sizeof(part), text.size());
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

int write_text(const std::string& path, const std::string& text, Kernel& kernel) {
  const KernelFd fd(kernel, kernel.open(path, O_WRONLY | O_TRUNC));
  if (fd.get() < 0) {
    return fd.get();
  }
  const ssize_t n = kernel.write(fd.get(), text.data(), text.size(), 0);
  return n < 0 ? static_cast<int>(n) : (static_cast<size_t>(n) == text.size() ? 0 : -EIO);
}

int link_name(const std::string& path, std::string* out, Kernel& kernel) {
  std::string target;
  if (const int rc = kernel.readlink(path, &target); rc != 0) {
    return rc;
  }
  *out = target.substr(target.rfind('/') + 1);  // without a slash, npos + 1 is 0: the whole target
  return 0;
}

}  // namespace rio::pmd::vfio
