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

int SharedBar::of_file(const std::string& path, size_t len_bytes, SharedBar* out) {
  SharedBar bar;
  // Not O_TRUNC, so that anything but a regular file is left alone.
  bar.fd_ = base::Fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
  struct stat info {};
  int rc = 0;
  if (!bar.fd_.valid() || fstat(bar.fd(), &info) != 0) {
    rc = -errno;
  } else if (!S_ISREG(info.st_mode)) {
    rc = -EINVAL;
  } else if (ftruncate(bar.fd(), 0) != 0 ||
             ftruncate(bar.fd(), static_cast<off_t>(len_bytes)) != 0) {
    rc = -errno;
  } else {
    rc = base::Mapping::of_file(bar.fd_, 0, len_bytes, &bar.memory_);
  }
  if (rc != 0) {
    complain("bar=%s: %s; give a file that may be made or overwritten, best in /dev/shm",
             path.c_str(), std::strerror(-rc));
    return rc;
  }
  *out = std::move(bar);
  return 0;
}

int SharedBar::anonymous(size_t len_bytes, SharedBar* out) {
  SharedBar bar;
  bar.fd_ = base::Fd(memfd_create("rio-cardsim-bar", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!bar.fd_.valid() || ftruncate(bar.fd(), static_cast<off_t>(len_bytes)) != 0 ||
      fcntl(bar.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return -errno;
  }
  if (const int rc = base::Mapping::of_file(bar.fd_, 0, len_bytes, &bar.memory_); rc != 0) {
    return rc;
  }
  *out = std::move(bar);
  return 0;
}

uint32_t SharedBar::gen_req() const {
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(va() + regs::id::gen_req()),
                         __ATOMIC_RELAXED);
}

}  // namespace rio::cardsim
