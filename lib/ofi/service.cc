#include "lib/ofi/service.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/folder.hpp"
#include "base/formatted.hpp"
#include "base/log.hpp"
#include "base/own_folder.hpp"

namespace rio::ofi {
namespace {

constexpr std::string_view kPrefix = ".ofi-";
constexpr uint32_t kSweepMax = 64;  // most files that a new service checks
constexpr int kTries = 10;          // tries to open a file that another process removes
/// First of the numbers for endpoints that name none: as with IP, the top range is for such use.
constexpr uint32_t kFirstFree = 49152;
constexpr uint32_t kFreeNumbers = 65536 - kFirstFree;
constexpr auto kSweepLasts = std::chrono::milliseconds(1);

/// Services of this process. A record lock ends when its process closes any descriptor of the file,
/// so a process looks here first and never opens its own files again.
struct Own {
  struct Entry {
    pid_t owner;
    Name name;
  };
  std::mutex mutex;
  std::map<std::string, Entry> by_path;

  /// @return null: served by another process, or by none.
  [[nodiscard]] const Name* find(const std::string& path) const {
    const auto found = by_path.find(path);
    return found != by_path.end() && found->second.owner == getpid() ? &found->second.name
                                                                     : nullptr;
  }
};

[[nodiscard]] Own& own() {
  static Own all;
  return all;
}

/// The folder also holds folders of fabrics; their code ignores names that begin with a dot.
[[nodiscard]] std::string path_of(const std::string& folder, uint16_t fabric, uint16_t number) {
  return folder + base::formatted("/.ofi-%08x-%u", fabric, unsigned{number});
}

/// Opens a file and locks it. @param out the locked file. @return 0; -EADDRINUSE; -errno.
[[nodiscard]] int open_locked(const std::string& path, base::Fd* out) {
  for (int i = 0; i < kTries; ++i) {
    base::Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) {
      return -errno;
    }
    if (lockf(fd.get(), F_TLOCK, 0) != 0) {
      const int rc = errno == EAGAIN || errno == EACCES ? -EADDRINUSE : -errno;
      fd.reset();
      if (rc != -EADDRINUSE) {
        return rc;
      }
      std::this_thread::sleep_for(kSweepLasts);  // another process may hold the lock only to check
                                                 // the file
      continue;
    }
    struct stat info {};
    if (fstat(fd.get(), &info) == 0 && info.st_nlink != 0) {
      *out = std::move(fd);
      return 0;
    }  // else the file was removed before it was locked
  }
  return -EADDRINUSE;
}

/// Remove a file whose owner was killed. Not for files of this process.
void remove_if_unserved(const std::string& path) {
  const base::Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid() && lockf(fd.get(), F_TLOCK, 0) == 0) {
    unlink(path.c_str());
  }
}

/// Check some of the other services in the folder, under Own's mutex.
void sweep(const std::string& folder) {
  uint32_t looks = 0;
  for (const std::string& name : base::names_in(folder)) {
    if (looks == kSweepMax) {
      break;
    }
    const std::string path = base::formatted("%s/%s", folder.c_str(), name.c_str());
    if (name.starts_with(kPrefix) && own().find(path) == nullptr) {
      ++looks;
      remove_if_unserved(path);
    }
  }
}

/// Creates the folder. @param number the service to offer, for the log.
[[nodiscard]] int make_folder(uint16_t number, std::string* out) {
  std::string error;
  const int rc = base::make_user_folder(out, &error);
  if (rc != 0) {
    base::log_error("rio: service %u cannot be offered: %s", unsigned{number}, error.c_str());
  }
  return rc;
}

[[nodiscard]] int complain(int rc, uint16_t number, const std::string& path) {
  if (rc == -EADDRINUSE) {
    base::log_error("rio: another endpoint of this user serves %u; take another service, or end it",
                    unsigned{number});
  } else {
    base::log_error(
        "rio: service %u cannot be offered: %s: %s; set RIO_RUNTIME_DIR to a folder of "
        "yours",
        unsigned{number}, path.c_str(), std::strerror(-rc));
  }
  return rc;
}

}  // namespace

Service::Service(std::string path, base::Fd fd)
    : path_(std::move(path)), fd_(std::move(fd)), owner_(getpid()) {}

Service::~Service() {
  const std::scoped_lock lock(own().mutex);
  if (owner_ == getpid()) {
    own().by_path.erase(path_);
    unlink(path_.c_str());  // still locked: no other process can have it
  }
  fd_.reset();  // under Own's mutex: this ends the lock
}

/// Try to serve a number, without a log line. @return 0; -EADDRINUSE: another endpoint serves it;
/// -errno.
int Service::try_claim(const std::string& path, const std::string& folder, const Name& name,
                       std::unique_ptr<Service>* out) {
  const std::scoped_lock lock(own().mutex);
  base::Fd fd;
  if (const int rc = own().find(path) != nullptr ? -EADDRINUSE : open_locked(path, &fd); rc != 0) {
    return rc;
  }
  if (const ssize_t n = pwrite(fd.get(), &name, sizeof(name), 0); n != sizeof(name)) {
    const int rc = n < 0 ? -errno : -ENOSPC;
    unlink(path.c_str());
    return rc;
  }
  out->reset(new Service(path, std::move(fd)));
  own().by_path[path] = {getpid(), name};
  sweep(folder);
  return 0;
}

int Service::claim(uint16_t fabric, uint16_t number, const Name& name, bool is_needed,
                   std::unique_ptr<Service>* out) {
  std::string folder;
  if (const int rc = make_folder(number, &folder); rc != 0) {
    return rc;
  }
  const std::string path = path_of(folder, fabric, number);
  const int rc = try_claim(path, folder, name, out);
  if (rc == -EADDRINUSE && !is_needed) {
    base::log_warning(
        "rio: another endpoint of this user serves %u; this one is found only by its "
        "name",
        unsigned{number});
    return 0;
  }
  return rc == 0 ? 0 : complain(rc, number, path);
}

int Service::claim_any(uint16_t fabric, const Name& name, uint16_t* number,
                       std::unique_ptr<Service>* out) {
  std::string folder;
  if (const int rc = make_folder(0, &folder); rc != 0) {
    return rc;
  }
  // Endpoints begin at different numbers, so that a first try is rarely taken.
  const uint32_t first = name.owner + name.endpoint;
  for (uint32_t i = 0; i < kFreeNumbers; ++i) {
    const auto tried = static_cast<uint16_t>(kFirstFree + (first + i) % kFreeNumbers);
    const std::string path = path_of(folder, fabric, tried);
    const int rc = try_claim(path, folder, name, out);
    if (rc == 0) {
      *number = tried;
    }
    if (rc != -EADDRINUSE) {
      return rc == 0 ? 0 : complain(rc, tried, path);
    }
  }
  base::log_error("rio: all services from %u on are taken; name one, or close endpoints",
                  kFirstFree);
  return -EADDRINUSE;
}

int find_service(uint16_t fabric, uint16_t number, Name* out) {
  const std::string path =
      path_of(base::runtime_base() + "/" + base::user_folder_name(), fabric, number);
  const std::scoped_lock lock(own().mutex);
  if (const Name* const name = own().find(path); name != nullptr) {
    *out = *name;
    return 0;
  }
  const base::Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) {
    return errno == ENOENT || errno == ENOTDIR ? -ECONNREFUSED : -EIO;
  }
  const bool served = lockf(fd.get(), F_TEST, 0) != 0 && errno == EACCES;
  Name name;
  const bool whole = pread(fd.get(), &name, sizeof(name), 0) == sizeof(name);
  if (!served || !whole) {  // not served, or not written completely yet
    return -ECONNREFUSED;
  }
  *out = name;
  return 0;
}

}  // namespace rio::ofi
