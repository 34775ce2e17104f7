#include "lib/barrier/node_meeting.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/fd.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/own_folder.hpp"

namespace rio::barrier {
namespace {

constexpr size_t kBytes = 4096;
constexpr mode_t kMode = 0600;

/// @return 0, -errno; logged.
[[nodiscard]] int path_of(const std::string& name, std::string* out) {
  std::string folder;
  std::string error;
  const int rc = base::make_user_folder(&folder, &error);
  if (rc != 0) {
    base::log_error("barrier: %s", error.c_str());
    return rc;
  }
  *out = folder + "/" + name;
  return 0;
}

}  // namespace

uint64_t node_mark() {
  struct stat info {};
  if (stat(base::runtime_base().c_str(), &info) != 0) {
    return 0;
  }
  char boot[64] = {};
  const base::Fd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file.valid() || read(file.get(), boot, sizeof(boot) - 1) <= 0) {
    return 0;
  }
  // A folder of one machine: its device and inode differ between mount namespaces.
  const std::string text = boot + std::to_string(info.st_dev) + "/" + std::to_string(info.st_ino) +
                           "/" + std::to_string(geteuid());
  return base::fnv1a<uint64_t>(text);
}

NodeMeeting::NodeMeeting(base::Mapping memory, uint32_t members)
    : memory_(std::move(memory)),
      words_(reinterpret_cast<Words*>(memory_.va())),
      members_(members) {
  static_assert(sizeof(Words) <= kBytes && std::atomic<uint64_t>::is_always_lock_free);
}

int NodeMeeting::map(const std::string& path, int flags, base::Mapping* out) {
  const base::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, kMode));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return -errno;
  }
  if ((flags & O_CREAT) != 0) {
    if (const int error = posix_fallocate(file.get(), 0, kBytes); error != 0) {
      unlink(path.c_str());
      return -error;  // no fault later, when the page is written
    }
  } else if (!S_ISREG(info.st_mode) || info.st_size != kBytes) {
    return -EINVAL;
  }
  return base::Mapping::of_file(file, 0, kBytes, out);
}

int NodeMeeting::create(const std::string& name, uint32_t members,
                        std::unique_ptr<NodeMeeting>* out) {
  std::string path;
  base::Mapping memory;
  int rc = path_of(name, &path);
  rc = rc != 0 ? rc : map(path, O_CREAT | O_EXCL, &memory);
  if (rc != 0) {
    return rc;
  }
  std::unique_ptr<NodeMeeting> made(new NodeMeeting(std::move(memory), members));
  made->path_ = path;
  made->words_ = new (made->memory_.va()) Words{};
  made->words_->members = members;
  made->words_->magic = kMagic;
  *out = std::move(made);
  return 0;
}

int NodeMeeting::open(const std::string& name, uint32_t members,
                      std::unique_ptr<NodeMeeting>* out) {
  std::string path;
  base::Mapping memory;
  int rc = path_of(name, &path);
  rc = rc != 0 ? rc : map(path, 0, &memory);
  if (rc != 0) {
    return rc;
  }
  std::unique_ptr<NodeMeeting> made(new NodeMeeting(std::move(memory), members));
  if (made->words_->magic != kMagic || made->words_->members != members) {
    return -EINVAL;
  }
  *out = std::move(made);
  return 0;
}

void NodeMeeting::hide() {
  if (!path_.empty()) {
    unlink(path_.c_str());
    path_.clear();
  }
}

}  // namespace rio::barrier
