#include "fpga/cardsim/shared_bar.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fpga/cardsim/complain.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::cardsim {

SharedBar::~SharedBar() {
  if (va_ != nullptr) {
    munmap(va_, len_bytes_);
  }
  if (fd_ >= 0) {
    close(fd_);
  }
}

SharedBar::SharedBar(SharedBar&& other) noexcept {
  *this = std::move(other);
}

SharedBar& SharedBar::operator=(SharedBar&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(va_, other.va_);
  std::swap(len_bytes_, other.len_bytes_);
  return *this;
}

int SharedBar::map(size_t len_bytes) {
  void* const va = mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (va == MAP_FAILED) {
    return -errno;
  }
  va_ = static_cast<uint8_t*>(va);
  len_bytes_ = len_bytes;
  return 0;
}

int SharedBar::of_file(const std::string& path, size_t len_bytes, SharedBar* out) {
  SharedBar bar;
  // Not O_TRUNC, so that anything but a regular file is left alone.
  bar.fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  struct stat info {};
  int rc = bar.fd_ < 0 || fstat(bar.fd_, &info) != 0 ? -errno : 0;
  if (rc == 0 && !S_ISREG(info.st_mode)) {
    rc = -EINVAL;
  }
  if (rc == 0 &&
      (ftruncate(bar.fd_, 0) != 0 || ftruncate(bar.fd_, static_cast<off_t>(len_bytes)) != 0)) {
    rc = -errno;
  }
  if (rc == 0) {
    rc = bar.map(len_bytes);
  }
  if (rc != 0) {
    complain("bar=%s: %s; give a file that may be made or overwritten, best in /dev/shm",
             path.c_str(), std::strerror(-rc));
    return rc;
  }
  *out = std::move(bar);
  return 0;
}

int SharedBar::anonymous(const char* name, size_t len_bytes, SharedBar* out) {
  SharedBar bar;
  bar.fd_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (bar.fd_ < 0 || ftruncate(bar.fd_, static_cast<off_t>(len_bytes)) != 0 ||
      fcntl(bar.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return -errno;
  }
  if (const int rc = bar.map(len_bytes); rc != 0) {
    return rc;
  }
  *out = std::move(bar);
  return 0;
}

uint32_t gen_req_of(const SharedBar& bar) {
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(bar.va() + regs::id::gen_req()),
                         __ATOMIC_RELAXED);
}

}  // namespace rio::cardsim
