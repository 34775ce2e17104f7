#include "fpga/cardsim/client_memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <utility>

#include "fpga/cardsim/listen_protocol.hpp"

namespace rio::cardsim {
namespace {

/// Checks that access to [0, end) of a memfd can never raise SIGBUS.
[[nodiscard]] int check_memfd(const base::Fd& memfd, uint64_t end) {
  struct statfs system {};
  struct stat info {};
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0 || fstatfs(memfd.get(), &system) != 0 || fstat(memfd.get(), &info) != 0 ||
      system.f_type != TMPFS_MAGIC) {
    return -ENOTSUP;
  }
  if ((seals & F_SEAL_SHRINK) == 0) {
    return -EPERM;
  }
  return info.st_size >= 0 && static_cast<uint64_t>(info.st_size) >= end ? 0 : -EINVAL;
}

}  // namespace

int ClientMemory::map(uint64_t iova, uint64_t offset, uint64_t len_bytes, const base::Fd& memfd) {
  if (len_bytes == 0 || ((iova | offset | len_bytes) & (protocol::kPageBytes - 1)) != 0 ||
      iova + len_bytes - 1 < iova || offset + len_bytes < offset ||
      offset + len_bytes > static_cast<uint64_t>(INT64_MAX)) {
    return -EINVAL;
  }
  if (const int rc = check_memfd(memfd, offset + len_bytes); rc != 0) {
    return rc;
  }
  if (shown_.size() >= kWindowsMax) {
    return -ENOSPC;
  }
  base::Mapping memory;
  if (const int rc = base::Mapping::of_file(memfd, offset, len_bytes, &memory); rc != 0) {
    return rc;
  }
  if (const int rc = add({iova, len_bytes, memory.va()}); rc != 0) {
    return rc;
  }
  shown_.emplace(iova, std::move(memory));
  return 0;
}

int ClientMemory::unmap(uint64_t iova) {
  if (const int rc = remove(iova); rc != 0) {
    return rc;
  }
  shown_.erase(iova);  // after the card was told
  return 0;
}

void ClientMemory::clear() {
  while (!shown_.empty()) {
    static_cast<void>(unmap(shown_.begin()->first));
  }
}

}  // namespace rio::cardsim
