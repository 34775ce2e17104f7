#include "fpga/wire/shm/directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/folder.hpp"
#include "base/number.hpp"
#include "base/own_folder.hpp"
#include "base/peer_process.hpp"
#include "base/unix_socket.hpp"
#include "fpga/wire/free_ids.hpp"

namespace rio::wire::shm {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::string_view kBoardPrefix = "board-";
constexpr std::string_view kNewSuffix = ".new";
constexpr uint32_t kLastId = 0xFFFFFFFE;
constexpr int kBacklog = 4096;
constexpr auto kLockWait = std::chrono::seconds(5);  // limit for one holder of the lock
constexpr auto kLockWaitAll = std::chrono::seconds(120);
constexpr uint32_t kSweepMax = 64;  // other fabrics that a joining member checks

[[nodiscard]] bool number_of(std::string_view name, uint32_t* out) {
  return base::read_number(name, out) && std::to_string(*out) == name;
}

/// The path of a file in a folder, short however long that folder's path is.
[[nodiscard]] std::string path_in(const base::Fd& folder, const std::string& name) {
  return "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
}

/// Checks that descriptors have names under /proc, through which sockets in a folder are reached.
[[nodiscard]] int check_proc(const base::Fd& folder, std::string* error) {
  struct stat info {};
  const std::string path = path_in(folder, "");
  if (stat(path.c_str(), &info) == 0) {
    return 0;
  }
  const int rc = -errno;
  *error = rc == -ENOENT || rc == -ENOTDIR
               ? "/proc is not mounted (" + path +
                     "), which members need to find each other; mount it: mount "
                     "-t proc proc /proc"
               : base::why({path.c_str(), rc});
  return rc;
}

[[nodiscard]] std::vector<std::string> names_in(const base::Fd& folder) {
  return base::names_in(path_in(folder, ""));
}

}  // namespace

int Directory::join(const Seat& seat, std::unique_ptr<Directory>* out, std::string* error) {
  // The last member to leave may remove the folder just opened: then open the next one.
  const auto until = std::chrono::steady_clock::now() + kLockWaitAll;
  do {
    std::unique_ptr<Directory> made(new Directory);
    int rc = made->open_folder(seat.fabric, error);
    rc = rc == 0 ? made->lock(error) : rc;
    if (rc == kGone) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    rc = rc == 0 ? made->take(seat, error) : rc;
    made->unlock();
    if (rc == 0) {
      made->sweep_fabrics();
      *out = std::move(made);
    }
    return rc;
  } while (std::chrono::steady_clock::now() < until);
  return base::fail(
      error, -ETIMEDOUT,
      "the folder of shm:" + seat.fabric +
          " is removed again and again while it is opened; stop the program that removes it");
}

Directory::~Directory() {
  if (ids_ != 0 && owner_ == getpid()) {
    leave();
  }
  unlock();
}

void Directory::leave() {
  std::string ignored;  // the next member cleans up
  if (lock(&ignored) != 0) {
    return;
  }
  for (uint32_t i = 0; i < ids_; ++i) {
    unlinkat(folder_.get(), std::to_string(first_ + i).c_str(), 0);
  }
  shutdown(listener_.get(), SHUT_RDWR);  // a forked child may have it, too
  listener_.reset();
  if (!anybody()) {
    remove_folder();
  }
}

/// Opens a folder that belongs to this user alone, creating it if needed. Does not follow a
/// symbolic link. @param in_base `at` is the folder that RIO_RUNTIME_DIR names, which no member
/// removes.
int Directory::open_own_folder(int at, bool in_base, const std::string& name,
                               const std::string& path, base::Fd* out, std::string* error) {
  const bool made = mkdirat(at, name.c_str(), 0700) == 0;
  const int why = made ? 0 : errno;
  const bool there = made || why == EEXIST;
  base::Fd fd;
  if (there) {
    fd = base::Fd(openat(at, name.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  struct stat info {};
  if (!fd.valid()) {
    const int failed = there ? errno : why;
    if (failed == ENOENT && (there || !in_base)) {
      return kGone;
    }
    // Report another user's folder as such, not as one that cannot be opened.
    if (fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(info.st_mode)) {
      if (const int rc = base::check_own_folder(info, path, error); rc != 0) {
        return rc;
      }
    }
    const char* const what = there ? "opened" : "made";
    return base::fail_at(error, -failed, path, what, in_base);
  }
  if (fstat(fd.get(), &info) != 0) {
    return base::fail_at(error, -errno, path, "checked");
  }
  *out = std::move(fd);
  return base::check_own_folder(info, path, error);
}

int Directory::open_folder(const std::string& fabric, std::string* error) {
  const std::string base = base::runtime_base();
  const base::Fd root(open(base.c_str(), O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return base::fail_at(error, -errno, base, "opened");
  }
  user_path_ = base + "/" + base::user_folder_name();
  fabric_ = fabric;
  path_ = user_path_ + "/" + fabric;
  int rc = open_own_folder(root.get(), true, base::user_folder_name(), user_path_, &parent_, error);
  rc = rc == 0 ? open_own_folder(parent_.get(), false, fabric, path_, &folder_, error) : rc;
  return rc == 0 ? check_proc(folder_, error) : rc;
}

/// Locks the folder. Many members that start at once wait for each other, on few cores for long;
/// but not for a member that makes no progress.
int Directory::lock(std::string* error) {
  using Clock = std::chrono::steady_clock;
  const auto last = Clock::now() + kLockWaitAll;
  auto until = Clock::now() + kLockWait;
  int64_t holder = 0;
  int rc = 0;
  while ((rc = try_lock(error)) == kHeld) {
    const auto now = Clock::now();
    if (const int64_t next = last_locked(); next != holder) {
      holder = next;
      until = now + kLockWait;
    }
    if (now > until || now > last) {
      return base::fail(
          error, -ETIMEDOUT,
          path_ + "/lock is held by a process that is stuck; find it with fuser, and end it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return rc;
}

int Directory::try_lock(std::string* error) {
  base::Fd fd(openat(folder_.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) {
    return errno == ENOENT ? kGone : base::fail_at(error, -errno, path_ + "/lock", "opened");
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK || errno == EINTR
               ? kHeld
               : base::fail_at(error, -errno, path_ + "/lock", "locked");
  }
  lock_ = std::move(fd);
  struct stat info {};
  if (fstat(lock_.get(), &info) != 0) {
    const int rc = base::fail_at(error, -errno, path_ + "/lock", "checked");
    unlock();
    return rc;
  }
  if (info.st_nlink == 0) {
    unlock();
    return kGone;
  }
  static_cast<void>(futimens(lock_.get(), nullptr));  // shows others that there is a new holder
  return 0;
}

/// Unlocks explicitly: a close would leave the lock with a child forked meanwhile.
void Directory::unlock() {
  if (lock_.valid() && owner_ == getpid()) {
    flock(lock_.get(), LOCK_UN);
  }
  lock_.reset();
}

/// When the lock was last taken, from the file's time.
int64_t Directory::last_locked() const {
  struct stat info {};
  return fstatat(folder_.get(), kLockName, &info, AT_SYMLINK_NOFOLLOW) == 0
             ? int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec
             : 0;
}

/// Whether a living member may have a destID. @param trouble set if this process could not find
/// out.
bool Directory::may_live(uint32_t id, base::Trouble* trouble) const {
  base::Fd socket;
  if (const Called called = connect(id, &socket, trouble); called != Called::kConnected) {
    return called != Called::kNoMember;
  }
  // A forked child may have inherited the socket at which its dead parent listened.
  ucred peer{};
  return !base::peer_of(socket, &peer) || peer.pid <= 0 || !base::has_died(peer.pid);
}

/// Removes the sockets of dead members. @param live destIDs of living members. @return 0, -errno.
int Directory::sweep(std::set<uint32_t>* live, std::string* error) const {
  for (const std::string& name : names_in(folder_)) {
    uint32_t id = 0;
    if (!number_of(name, &id)) {
      continue;
    }
    base::Trouble trouble;
    if (may_live(id, &trouble)) {
      live->insert(id);
    } else {
      unlinkat(folder_.get(), name.c_str(), 0);
    }
    if (trouble) {
      *error = path_ + ": cannot look for members: " + base::why(trouble);
      return trouble.rc;
    }
  }
  return 0;
}

bool Directory::anybody() const {
  const std::vector<std::string> all = names_in(folder_);
  return std::any_of(all.begin(), all.end(), [&](const std::string& name) {
    uint32_t id = 0;
    return number_of(name, &id) && may_live(id, nullptr);
  });
}

std::vector<Directory::Board> Directory::sweep_boards(const std::set<uint32_t>& live) const {
  std::vector<Board> boards;
  for (const std::string& name : names_in(folder_)) {
    if (!name.starts_with(kBoardPrefix)) {
      continue;
    }
    char text[64] = {};
    const base::Fd fd(openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const ssize_t got = fd.valid() ? read(fd.get(), text, sizeof text - 1) : 0;
    const std::string_view content(text, got > 0 ? static_cast<size_t>(got) : 0);
    const size_t space = content.find(' ');
    Board board{name.substr(kBoardPrefix.size()), 0, 0};
    const bool sane = !name.ends_with(kNewSuffix) && space != std::string_view::npos &&
                      number_of(content.substr(0, space), &board.first) &&
                      number_of(content.substr(space + 1), &board.ids);
    const auto it = live.lower_bound(board.first);
    if (sane && it != live.end() && *it - board.first < board.ids) {
      boards.push_back(board);
    } else {
      unlinkat(folder_.get(), name.c_str(), 0);
    }
  }
  return boards;
}

int Directory::write_board(const Board& board) const {
  const std::string name = std::string(kBoardPrefix) + board.name;
  const std::string fresh = name + std::string(kNewSuffix);
  const std::string text = std::to_string(board.first) + " " + std::to_string(board.ids);
  const base::Fd fd(openat(folder_.get(), fresh.c_str(),
                           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid() ||
      write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      renameat(folder_.get(), fresh.c_str(), folder_.get(), name.c_str()) != 0) {
    return -errno;
  }
  return 0;
}

int Directory::take(const Seat& seat, std::string* error) {
  std::set<uint32_t> live;
  if (const int rc = sweep(&live, error); rc != 0) {
    return rc;
  }
  std::vector<Board> boards = sweep_boards(live);
  std::set<uint32_t> taken = live;
  for (const Board& board : boards) {
    for (uint32_t i = 0; board.name != seat.board && i < board.ids; ++i) {
      taken.insert(board.first + i);
    }
  }
  uint32_t first = seat.id != 0 ? seat.id : lowest_free(taken, seat.ids);
  if (seat.id != 0 && seat.id_step != 0 && seat.board.empty()) {
    first = next_free(taken, seat.id, seat.ids, seat.id_step);
  }
  uint32_t ids = seat.ids;
  if (!seat.board.empty()) {
    if (const int rc = take_board(seat, taken, boards, &first, error); rc != 0) {
      return rc;
    }
    first += seat.queue_pair;
    ids = 1;
  }
  if (first > kLastId || ids - 1 > kLastId - first) {
    return base::fail(error, -EINVAL,
                      path_ + ": there are no " + std::to_string(ids) + " destIDs from there on");
  }
  if (!all_free(taken, first, ids)) {
    return base::fail(error, -EBUSY,
                      path_ + ": destID " + std::to_string(*taken.lower_bound(first)) +
                          " is in use; give another id= (destid= of a DPDK device), or none");
  }
  if (const int rc = listen_at(first, error); rc != 0) {
    return rc;
  }
  const std::string name = std::to_string(first);
  for (uint32_t id = first + 1; id - first < ids; ++id) {
    const std::string other = std::to_string(id);
    if (linkat(folder_.get(), name.c_str(), folder_.get(), other.c_str(), 0) != 0) {
      return base::fail_at(error, -errno, path_ + "/" + other, "made");
    }
  }
  first_ = first;
  ids_ = ids;
  return 0;
}

int Directory::take_board(const Seat& seat, const std::set<uint32_t>& taken,
                          std::vector<Board>& boards, uint32_t* first, std::string* error) {
  for (const Board& board : boards) {
    if (board.name != seat.board) {
      continue;
    }
    if (board.ids != seat.ids || (seat.id != 0 && seat.id != board.first)) {
      return base::fail(error, -EINVAL,
                        path_ + ": board " + seat.board + " has " + std::to_string(board.ids) +
                            " queue pairs from destID " + std::to_string(board.first) +
                            "; give the same qps= and id=");
    }
    *first = board.first;
    return 0;
  }
  // The board's other members come later, so all of its destIDs have to be free.
  if (!all_free(taken, *first, seat.ids)) {
    return base::fail(error, -EBUSY,
                      path_ + ": destID " + std::to_string(*taken.lower_bound(*first)) +
                          " is in use; give the board another id=, or none");
  }
  const int rc = write_board({seat.board, *first, seat.ids});
  return rc == 0 ? 0 : base::fail(error, rc, path_ + ": no file for board " + seat.board);
}

int Directory::listen_at(uint32_t id, std::string* error) {
  const std::string name = std::to_string(id);
  const int rc = base::listen_at(path_in(folder_, name), SOCK_SEQPACKET, &listener_, kBacklog);
  if (rc != 0) {
    *error = base::why({(path_ + ": no socket for destID " + name).c_str(), rc});
  }
  return rc;
}

Directory::Called Directory::connect(uint32_t id, base::Fd* out, base::Trouble* trouble) const {
  const int rc = base::connect_to(path_in(folder_, std::to_string(id)), SOCK_SEQPACKET, out);
  switch (-rc) {
    case 0:
      return Called::kConnected;
    case ENOENT:
    case ECONNREFUSED:
      return Called::kNoMember;
    case EAGAIN:
      return Called::kBusy;
    default:
      if (trouble != nullptr) {
        *trouble = {"socket or connect", rc};
      }
      return Called::kTrouble;
  }
}

// Removes the folder. The caller holds the lock, and no member is left.
void Directory::remove_folder() {
  for (const std::string& name : names_in(folder_)) {
    if (name != kLockName) {
      unlinkat(folder_.get(), name.c_str(), 0);
    }
  }
  // The lock last: a process that waits for it then sees that the file has no name any more.
  unlinkat(folder_.get(), kLockName, 0);
  unlinkat(parent_.get(), fabric_.c_str(), AT_REMOVEDIR);
  rmdir(user_path_.c_str());  // fails while another fabric is in it
}

/// Removes folders of fabrics whose members were all killed: no process will join them again.
void Directory::sweep_fabrics() const {
  uint32_t left = kSweepMax;
  for (const std::string& name : names_in(parent_)) {
    if (name == fabric_ || name.starts_with('.')) {
      continue;
    }
    if (left-- == 0) {
      return;
    }
    Directory other;
    other.user_path_ = user_path_;
    other.path_ = user_path_ + "/" + name;
    other.fabric_ = name;
    other.parent_ = base::Fd(fcntl(parent_.get(), F_DUPFD_CLOEXEC, 0));
    other.folder_ =
        base::Fd(openat(parent_.get(), name.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    std::string ignored;  // then another process removes it
    if (other.parent_.valid() && other.folder_.valid() && other.try_lock(&ignored) == 0 &&
        !other.anybody()) {
      other.remove_folder();
    }
  }
}

}  // namespace rio::wire::shm
