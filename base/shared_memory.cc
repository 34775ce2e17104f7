#include "base/shared_memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fork.hpp"

namespace rio::base {
namespace {

constexpr size_t kStatBlockBytes = 512;  // of stat::st_blocks, on all file systems

}  // namespace

Trouble check_lasting(const Fd& fd, size_t len_bytes, bool* lasting) {
  *lasting = false;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) {
    // Not memory, or a descriptor opened with O_PATH.
    const bool is_theirs = errno == EINVAL || errno == EBADF;
    return is_theirs ? Trouble{} : failed("fcntl(F_GET_SEALS)");
  }
  struct stat info {};
  struct statfs kind {};
  if (fstat(fd.get(), &info) != 0 || fstatfs(fd.get(), &kind) != 0) {
    return failed("fstat of shared memory");
  }
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | kSealFutureWrite;
  *lasting = (seals & kNeeded) == kNeeded && kind.f_type == TMPFS_MAGIC &&
             info.st_size == static_cast<off_t>(len_bytes) &&
             info.st_blocks >= static_cast<blkcnt_t>(len_bytes / kStatBlockBytes);
  return {};
}

int SharedMemory::create(size_t len_bytes, size_t align_bytes, Others others, SharedMemory* out) {
  SharedMemory made;
  made.fd_ = Fd(memfd_create("riopmd-dma", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.fd_.valid() || ftruncate(made.fd_.get(), static_cast<off_t>(len_bytes)) != 0) {
    return -errno;
  }
  // No holes: a reader of a page that cannot be had would get a signal.
  if (others == Others::kRead &&
      fallocate(made.fd_.get(), 0, 0, static_cast<off_t>(len_bytes)) != 0) {
    return -errno;
  }
  Mapping memory;
  if (const int rc = Mapping::of_addresses(len_bytes, align_bytes, &memory); rc != 0) {
    return rc;
  }
  if (map_shared(memory.va(), len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 made.fd_.get(), ChildFinds::kCopy) == MAP_FAILED) {
    return -errno;
  }
  made.memory_ = std::move(memory);
  // After the mapping, which may write in any case.
  const int only_read = others == Others::kRead ? kSealFutureWrite : 0;
  if (fcntl(made.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | only_read | F_SEAL_SEAL) !=
      0) {
    return -errno;
  }
  *out = std::move(made);
  return 0;
}

void SharedMemory::reset() {
  if (memory_.valid()) {
    forget_in_child(memory_.va());
  }
  memory_.reset();
  fd_.reset();
}

void ReadableAreas::add(const SharedMemory& memory) {
  const std::lock_guard lock(mutex_);
  areas_.emplace(next_number_++, Listed{memory.va(), memory.len_bytes(), memory.fd().get()});
}

void ReadableAreas::remove(const uint8_t* va) {
  const std::lock_guard lock(mutex_);
  std::erase_if(areas_, [va](const auto& area) { return area.second.va == va; });
}

std::vector<ReadableAreas::Area> ReadableAreas::largest(size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<Area> found;
  for (const auto& [number, area] : areas_) {
    found.push_back({number, area.va, area.len_bytes, {}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Area& a, const Area& b) { return a.len_bytes > b.len_bytes; });
  found.resize(std::min(found.size(), most));
  for (Area& area : found) {
    area.fd = Fd(fcntl(areas_.at(area.number).fd, F_DUPFD_CLOEXEC, 0));
  }
  std::erase_if(found, [](const Area& area) { return !area.fd.valid(); });
  return found;
}

bool ReadableAreas::has(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return areas_.count(number) != 0;
}

}  // namespace rio::base
