#include "lib/barrier/memory_meeting.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <new>
#include <sstream>
#include <utility>

#include "base/fd.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/own_folder.hpp"

namespace rio::barrier {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr mode_t kMode = 0600;
constexpr uint32_t kErrorShift = 32;

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

/// The first line of a file of the kernel; empty: it cannot be read.
[[nodiscard]] std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// start_of() when the kernel says nothing, as to a process that has no descriptor left.
constexpr uint64_t kUnknown = UINT64_MAX;

/// When a process started, in ticks since the machine's start; 0: there is none, or it has died.
/// One whose first thread has ended looks like a dead one, but has other threads.
/// A later process with the same number has another time.
[[nodiscard]] uint64_t start_of(uint64_t process) {
  const base::Fd file(
      ::open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[1024];
  const ssize_t n = file.valid() ? read(file.get(), bytes, sizeof(bytes)) : -1;
  if (n <= 0) {
    return n < 0 && (errno == ENOENT || errno == ESRCH) ? 0 : kUnknown;
  }
  const std::string text(bytes, static_cast<size_t>(n));
  // The name, in parentheses, may hold anything.
  const size_t name_end = text.rfind(')');
  std::istringstream fields(name_end == std::string::npos ? "" : text.substr(name_end + 1));
  // proc(5): the state is field 3, the number of threads 20, the start 22.
  constexpr uint32_t kFieldsBetween = 16;
  char state = 'X';
  std::string skipped;
  uint64_t threads = 0;
  uint64_t started = 0;
  fields >> state;
  for (uint32_t i = 0; i < kFieldsBetween; ++i) {
    fields >> skipped;
  }
  fields >> threads >> skipped >> started;
  return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : started;
}

}  // namespace

uint64_t node_mark() {
  struct stat folder {};
  struct stat processes {};
  const std::string boot = line_of("/proc/sys/kernel/random/boot_id");
  if (boot.empty() || stat(base::runtime_base().c_str(), &folder) != 0 ||
      stat("/proc/self/ns/pid", &processes) != 0) {
    return 0;
  }
  // Device and inode of the folder differ between mount namespaces.
  const std::string text = boot + std::to_string(folder.st_dev) + "/" +
                           std::to_string(folder.st_ino) + "/" + std::to_string(processes.st_ino) +
                           "/" + std::to_string(geteuid());
  return base::fnv1a<uint64_t>(text);
}

MemoryMeeting::MemoryMeeting(base::Mapping memory, uint32_t members, uint32_t rank)
    : memory_(std::move(memory)),
      words_(reinterpret_cast<Words*>(memory_.va())),
      members_(members),
      rank_(rank) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
}

size_t MemoryMeeting::bytes_for(uint32_t members) {
  const size_t bytes = sizeof(Words) + size_t{members} * sizeof(Member);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

int MemoryMeeting::map(const std::string& path, int flags, size_t bytes, base::Mapping* out) {
  const base::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, kMode));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return -errno;
  }
  if ((flags & O_CREAT) != 0) {
    // Not ftruncate(): with too little memory, the first write to a page would then be a fault.
    if (const int error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0) {
      unlink(path.c_str());
      return -error;
    }
  } else if (!S_ISREG(info.st_mode) || info.st_size != static_cast<off_t>(bytes)) {
    return -EINVAL;
  }
  return base::Mapping::of_file(file, 0, bytes, out);
}

int MemoryMeeting::create(const std::string& name, uint32_t members, uint32_t rank,
                          std::unique_ptr<MemoryMeeting>* out) {
  std::string path;
  base::Mapping memory;
  int rc = path_of(name, &path);
  rc = rc != 0 ? rc : map(path, O_CREAT | O_EXCL, bytes_for(members), &memory);
  if (rc != 0) {
    return rc;
  }
  std::unique_ptr<MemoryMeeting> made(new MemoryMeeting(std::move(memory), members, rank));
  made->path_ = path;
  new (made->memory_.va()) Words{};
  for (uint32_t i = 0; i < members; ++i) {
    new (&made->member(i)) Member{};
  }
  made->words_->members = members;
  made->words_->magic = kMagic;
  made->sign();
  *out = std::move(made);
  return 0;
}

int MemoryMeeting::open(const std::string& name, uint32_t members, uint32_t rank,
                        std::unique_ptr<MemoryMeeting>* out) {
  std::string path;
  base::Mapping memory;
  int rc = path_of(name, &path);
  rc = rc != 0 ? rc : map(path, 0, bytes_for(members), &memory);
  if (rc != 0) {
    return rc;
  }
  std::unique_ptr<MemoryMeeting> made(new MemoryMeeting(std::move(memory), members, rank));
  if (made->words_->magic != kMagic || made->words_->members != members) {
    made->words_ = nullptr;
    return -EINVAL;
  }
  made->path_ = path;
  made->sign();
  *out = std::move(made);
  return 0;
}

void MemoryMeeting::sign() {
  own().started = start_of(static_cast<uint64_t>(getpid()));
  own().process = static_cast<uint64_t>(getpid());
}

MemoryMeeting::~MemoryMeeting() {
  hide();
  if (words_ != nullptr) {
    own().left = epoch_ + 1;
  }
}

void MemoryMeeting::hide() {
  if (!path_.empty()) {
    unlink(path_.c_str());
    path_.clear();
  }
}

MemoryMeeting::Failure MemoryMeeting::failure() const {
  const uint64_t word = words_->failed;
  return {-static_cast<int>(word >> kErrorShift), static_cast<uint32_t>(word)};
}

void MemoryMeeting::fail(int error, uint32_t rank) {
  uint64_t none = 0;
  words_->failed.compare_exchange_strong(
      none, uint64_t{static_cast<uint32_t>(-error)} << kErrorShift | rank);
}

void MemoryMeeting::look_for_lost() {
  uint32_t arrived = 0;
  for (uint32_t rank = 0; rank < members_ && !has_failed(); ++rank) {
    const Member& each = member(rank);
    // acquire: pairs with arrive().
    if (each.arrived.load(std::memory_order_acquire) >= epoch_) {
      ++arrived;
    } else if (each.left != 0) {
      fail(-ECONNREFUSED, rank);
    } else if (has_died(each)) {
      fail(-ECONNRESET, rank);
    }
  }
  if (arrived == members_ && members_ > kLookedAtMost) {
    // One that died within arrive() may not have counted itself, or not have written the end.
    uint64_t before = epoch_ - 1;
    words_->ended.compare_exchange_strong(before, epoch_);
  }
}

bool MemoryMeeting::has_died(const Member& member) {
  const uint64_t started = start_of(member.process);
  return started == 0 ||
         (started != kUnknown && member.started != kUnknown && started != member.started);
}

}  // namespace rio::barrier
