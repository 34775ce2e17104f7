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

/// Whether touching [0, end) of it can never raise SIGBUS.
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
  if (windows_.size() >= kWindowsMax) {
    return -ENOSPC;
  }
  const auto next = windows_.upper_bound(iova + len_bytes - 1);
  if (next != windows_.begin()) {
    const model::HostWindow& before = std::prev(next)->second.window;
    if (before.iova + before.len_bytes - 1 >= iova) {
      return -EEXIST;
    }
  }
  base::Mapping memory;
  if (const int rc = base::Mapping::of_file(memfd, offset, len_bytes, &memory); rc != 0) {
    return rc;
  }
  const model::HostWindow window{iova, len_bytes, memory.va()};
  windows_.emplace(iova, Shown{window, std::move(memory)});
  return 0;
}

int ClientMemory::unmap(uint64_t iova) {
  const auto it = windows_.find(iova);
  if (it == windows_.end()) {
    return -ENOENT;
  }
  const auto shown = windows_.extract(it);  // unmapped on return: the card is told before
  changed();
  return 0;
}

void ClientMemory::clear() {
  const auto shown = std::exchange(windows_, {});  // unmapped on return: the card is told before
  changed();
}

bool ClientMemory::find(uint64_t iova, model::HostWindow* out) {
  const auto next = windows_.upper_bound(iova);
  if (next == windows_.begin() || !std::prev(next)->second.window.holds(iova, 1)) {
    return false;
  }
  *out = std::prev(next)->second.window;
  return true;
}

void ClientMemory::refused(uint64_t iova) {
  if (faults_++ == 0) {
    first_fault_ = iova;
  }
}

}  // namespace rio::cardsim
