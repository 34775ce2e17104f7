#include "lib/msg/rail_page.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/folder.hpp"
#include "base/formatted.hpp"
#include "base/log.hpp"
#include "base/own_folder.hpp"
#include "base/trouble.hpp"
#include "lib/msg/config.hpp"

namespace rio::msg {
namespace {

constexpr const char* kPrefix = "rails.";
constexpr uint64_t kMagic = 0x31454741504C5252;  // "RRLPAGE1": changes with the layout
constexpr uint32_t kCardBytes = 128;
constexpr uint32_t kPortsMax = 1024;  // of a process
constexpr int kLooksMost = 100;       // at a page that is being written

/// The file. The words of `rails` and `time_ns` belong to `sequence`, which is odd while the port
/// writes them.
struct Page {
  struct Rail {
    char card[kCardBytes];
    RailStats stats;
  };
  uint64_t magic;  // written last, once
  uint32_t pid;
  uint32_t dest_id;
  uint64_t count;
  uint64_t sequence;
  uint64_t time_ns;
  Rail rails[kRailsMax];
};
static_assert(sizeof(RailStats) % sizeof(uint64_t) == 0);

[[nodiscard]] Page& page_of(const base::Mapping& map) {
  return *reinterpret_cast<Page*>(map.va());
}
[[nodiscard]] std::atomic_ref<uint64_t> word(uint64_t& at) {
  return std::atomic_ref<uint64_t>(at);
}
void store(const RailStats& from, RailStats* to) {
  const auto* const words = reinterpret_cast<const uint64_t*>(&from);
  for (size_t i = 0; i < sizeof(from) / sizeof(uint64_t); ++i) {
    word(reinterpret_cast<uint64_t*>(to)[i]).store(words[i], std::memory_order_relaxed);
  }
}
void load(RailStats& from, RailStats* to) {
  for (size_t i = 0; i < sizeof(from) / sizeof(uint64_t); ++i) {
    reinterpret_cast<uint64_t*>(to)[i] =
        word(reinterpret_cast<uint64_t*>(&from)[i]).load(std::memory_order_relaxed);
  }
}

/// Open a page. Removes it if its program has died. @return false: there is nothing to read.
[[nodiscard]] bool open_page(const std::string& path, base::Mapping* out) {
  const base::Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != sizeof(Page) || base::Mapping::of_file(file, 0, sizeof(Page), out) != 0 ||
      word(page_of(*out).magic).load(std::memory_order_acquire) != kMagic) {
    return false;  // pairs with the release in create(): the page is complete and locked
  }
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
    static_cast<void>(unlink(path.c_str()));
    return false;
  }
  return true;
}

/// The paths of all pages. @param folder the user's, which is closed to others.
[[nodiscard]] std::vector<std::string> pages_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : base::names_in(folder)) {
    if (name.starts_with(kPrefix)) {
      paths.push_back(base::formatted("%s/%s", folder.c_str(), name.c_str()));
    }
  }
  return paths;
}

/// @return false: the page makes no sense, or is written all the time.
[[nodiscard]] bool read_page(Page& page, PortRails* out) {
  out->pid = page.pid;
  out->dest_id = page.dest_id;
  const uint64_t count = page.count;
  if (count == 0 || count > kRailsMax) {
    return false;
  }
  out->rails.resize(count);
  for (uint64_t i = 0; i < count; ++i) {
    out->rails[i].card.assign(page.rails[i].card, strnlen(page.rails[i].card, kCardBytes));
  }
  for (int looks = 0; looks < kLooksMost; ++looks) {
    // acquire: the words below are not older; pairs with the release at the end of write().
    const uint64_t before = word(page.sequence).load(std::memory_order_acquire);
    out->time_ns = word(page.time_ns).load(std::memory_order_relaxed);
    for (uint64_t i = 0; i < count; ++i) {
      load(page.rails[i].stats, &out->rails[i].stats);
    }
    // The loads above come before the one below; pairs with the fence in write().
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && word(page.sequence).load(std::memory_order_relaxed) == before) {
      return true;
    }
  }
  return false;
}

}  // namespace

RailPage::~RailPage() {
  if (map_.valid() && pid_ == getpid()) {  // a child of a fork has a copy of the object
    static_cast<void>(unlink(path_.c_str()));
  }
}

int RailPage::create(uint32_t dest_id, std::span<const std::string> cards) {
  std::string folder;
  std::string error;
  int rc = base::make_user_folder(&folder, &error);
  if (rc == 0) {
    for (const std::string& path : pages_in(folder)) {
      base::Mapping old;
      static_cast<void>(open_page(path, &old));
    }
    pid_ = getpid();
    rc = -EEXIST;
    for (uint32_t i = 0; rc == -EEXIST && i < kPortsMax; ++i) {
      path_ = folder + "/" + kPrefix + std::to_string(pid_) + "." + std::to_string(i);
      file_ =
          base::Fd(open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
      rc = file_.valid() ? 0 : -errno;
    }
    if (rc == 0 &&
        (flock(file_.get(), LOCK_EX | LOCK_NB) != 0 || ftruncate(file_.get(), sizeof(Page)) != 0)) {
      rc = -errno;
    }
    rc = rc != 0 ? rc : base::Mapping::of_file(file_, 0, sizeof(Page), &map_);
    error = rc != 0 ? base::why({("making " + path_).c_str(), rc}) : error;
  }
  if (rc != 0) {
    if (file_.valid()) {
      static_cast<void>(unlink(path_.c_str()));
    }
    base::log_warning("the counts of rails are not shown to rio-tool top: %s", error.c_str());
    return rc;
  }
  Page& page = page_of(map_);
  page.pid = static_cast<uint32_t>(pid_);
  page.dest_id = dest_id;
  page.count = cards.size();
  for (size_t i = 0; i < cards.size(); ++i) {
    std::memcpy(page.rails[i].card, cards[i].data(),
                std::min<size_t>(cards[i].size(), kCardBytes - 1));
  }
  // release: the words above are visible before the magic; pairs with open_page().
  word(page.magic).store(kMagic, std::memory_order_release);
  return 0;
}

void RailPage::write(uint64_t now_ns, std::span<const RailStats> stats) {
  Page& page = page_of(map_);
  const uint64_t sequence = page.sequence;
  word(page.sequence).store(sequence + 1, std::memory_order_relaxed);
  // The store above comes before those below; pairs with the fence in read_page().
  std::atomic_thread_fence(std::memory_order_release);
  word(page.time_ns).store(now_ns, std::memory_order_relaxed);
  for (size_t i = 0; i < stats.size(); ++i) {
    store(stats[i], &page.rails[i].stats);
  }
  // release: the words above are visible before the even number; pairs with read_page().
  word(page.sequence).store(sequence + 2, std::memory_order_release);
}

std::vector<PortRails> read_rail_pages() {
  std::vector<PortRails> all;
  const std::string folder = base::runtime_base() + "/" + base::user_folder_name();
  struct stat info {};
  std::string error;
  if (lstat(folder.c_str(), &info) != 0 || base::check_own_folder(info, folder, &error) != 0) {
    return all;
  }
  for (const std::string& path : pages_in(folder)) {
    base::Mapping map;
    PortRails port;
    if (open_page(path, &map) && read_page(page_of(map), &port)) {
      all.push_back(std::move(port));
    }
  }
  return all;
}

}  // namespace rio::msg
