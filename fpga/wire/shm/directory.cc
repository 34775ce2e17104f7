#include "fpga/wire/shm/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/number.hpp"
#include "base/own_folder.hpp"
#include "base/peer_process.hpp"
#include "fpga/wire/shm/folder_error.hpp"
#include "fpga/wire/shm/free_ids.hpp"

namespace rio::wire::shm {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::string_view kBoardPrefix = "board-";
constexpr std::string_view kNewSuffix = ".new";
constexpr uint32_t kLastId = 0xFFFFFFFE;
constexpr int kBacklog = 4096;
constexpr auto kLockWait = std::chrono::seconds(5);  // for one holder
constexpr auto kLockWaitAll = std::chrono::seconds(120);
constexpr uint32_t kSweepMax = 64;  // other fabrics that one who joins looks at

[[nodiscard]] bool number_of(std::string_view name, uint32_t* out) {
  return base::read_number(name, out) && std::to_string(*out) == name;
}

/// The address of a socket in a folder, however long that folder's path is.
[[nodiscard]] sockaddr_un address_in(const base::Fd& folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

[[nodiscard]] std::vector<std::string> names_in(const base::Fd& folder) {
  std::vector<std::string> all;
  const int fd = openat(folder.get(), ".", O_DIRECTORY | O_CLOEXEC);
  DIR* const dir = fd < 0 ? nullptr : fdopendir(fd);
  if (dir == nullptr) {
    return all;
  }
  while (const dirent* entry = readdir(dir)) {
    all.emplace_back(entry->d_name);
  }
  closedir(dir);
  return all;
}

}  // namespace

int Directory::join(const Seat& seat, std::unique_ptr<Directory>* out, std::string* error) {
  // The last member that leaves removes the folder that we have just opened: then there is a next
  // one.
  const auto until = std::chrono::steady_clock::now() + kLockWaitAll;
  do {
    std::unique_ptr<Directory> made(new Directory);
    int rc = 0;
    Step step = made->open_folder(seat.fabric, &rc, error);
    step = step == Step::kDone ? made->lock(&rc, error) : step;
    if (step == Step::kGone) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    rc = step == Step::kDone ? made->take(seat, error) : rc;
    made->unlock();
    if (rc == 0) {
      made->sweep_fabrics();
      *out = std::move(made);
    }
    return rc;
  } while (std::chrono::steady_clock::now() < until);
  return fail(
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
  std::string ignored;  // the next one cleans up
  int rc = 0;
  if (lock(&rc, &ignored) != Step::kDone) {
    return;
  }
  for (uint32_t i = 0; i < ids_; ++i) {
    unlinkat(folder_.get(), std::to_string(first_ + i).c_str(), 0);
  }
  shutdown(listener_.get(), SHUT_RDWR);  // a child that was forked may have it too
  listener_.reset();
  if (!anybody()) {
    remove_folder();
  }
}

/// Open a folder that belongs to this user alone, making it if needed. A symbolic link is not
/// followed. @param in_base `at` is the folder that RIO_RUNTIME_DIR names, which no member removes.
Directory::Step Directory::open_own_folder(int at, bool in_base, const std::string& name,
                                           const std::string& path, base::Fd* out, int* rc,
                                           std::string* error) {
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
      return Step::kGone;
    }
    // Report a folder of another user as such, rather than as one that cannot be opened.
    if (fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(info.st_mode) ||
        (*rc = base::check_own_folder(info, path, error)) == 0) {
      const char* const what = there ? "opened" : "made";
      *rc =
          in_base ? fail_at_base(error, -failed, path, what) : fail_at(error, -failed, path, what);
    }
    return Step::kFailed;
  }
  *rc = fstat(fd.get(), &info) == 0 ? base::check_own_folder(info, path, error)
                                    : fail_at(error, -errno, path, "looked at");
  *out = std::move(fd);
  return *rc == 0 ? Step::kDone : Step::kFailed;
}

Directory::Step Directory::open_folder(const std::string& fabric, int* rc, std::string* error) {
  const std::string base = base::runtime_base();
  const base::Fd root(open(base.c_str(), O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    *rc = fail_at(error, -errno, base, "opened");
    return Step::kFailed;
  }
  user_path_ = base + "/" + base::user_folder_name();
  fabric_ = fabric;
  path_ = user_path_ + "/" + fabric;
  Step step =
      open_own_folder(root.get(), true, base::user_folder_name(), user_path_, &parent_, rc, error);
  if (step == Step::kDone) {
    step = open_own_folder(parent_.get(), false, fabric, path_, &folder_, rc, error);
  }
  if (step == Step::kDone && (*rc = check_proc(folder_, error)) != 0) {
    return Step::kFailed;
  }
  return step;
}

/// Many members that come at once wait for each other, on few cores for long. A member that does
/// not go on is not waited for.
Directory::Step Directory::lock(int* rc, std::string* error) {
  using Clock = std::chrono::steady_clock;
  const auto last = Clock::now() + kLockWaitAll;
  auto until = Clock::now() + kLockWait;
  int64_t holder = 0;
  Step step = Step::kDone;
  while ((step = try_lock(rc, error)) == Step::kHeld) {
    const auto now = Clock::now();
    if (const int64_t next = last_locked(); next != holder) {
      holder = next;
      until = now + kLockWait;
    }
    if (now > until || now > last) {
      *rc = fail(error, -ETIMEDOUT,
                 path_ +
                     "/lock is held by a process that is stuck; find it with fuser, and "
                     "end it");
      return Step::kFailed;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return step;
}

Directory::Step Directory::try_lock(int* rc, std::string* error) {
  base::Fd fd(openat(folder_.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) {
    *rc = -errno;
    if (*rc == -ENOENT) {
      return Step::kGone;
    }
    *rc = fail_at(error, *rc, path_ + "/lock", "opened");
    return Step::kFailed;
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    *rc = -errno;
    if (*rc == -EWOULDBLOCK || *rc == -EINTR) {
      return Step::kHeld;
    }
    *rc = fail_at(error, *rc, path_ + "/lock", "locked");
    return Step::kFailed;
  }
  lock_ = std::move(fd);
  struct stat info {};
  if (fstat(lock_.get(), &info) != 0) {
    *rc = fail_at(error, -errno, path_ + "/lock", "looked at");
    unlock();
    return Step::kFailed;
  }
  if (info.st_nlink == 0) {
    unlock();
    return Step::kGone;
  }
  static_cast<void>(futimens(lock_.get(), nullptr));  // others see a new holder
  return Step::kDone;
}

/// Closing alone would leave the lock with a child that was forked meanwhile.
void Directory::unlock() {
  if (lock_.valid() && owner_ == getpid()) {
    flock(lock_.get(), LOCK_UN);
  }
  lock_.reset();
}

/// When the lock was taken, as the file tells it.
int64_t Directory::last_locked() const {
  struct stat info {};
  return fstatat(folder_.get(), kLockName, &info, AT_SYMLINK_NOFOLLOW) == 0
             ? int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec
             : 0;
}

std::vector<std::string> Directory::names() const {
  return names_in(folder_);
}

/// @param trouble set if this process could not find out.
bool Directory::may_live(uint32_t id, base::Trouble* trouble) const {
  base::Fd socket;
  if (const Called called = connect(id, &socket, trouble); called != Called::kConnected) {
    return called != Called::kNobody;
  }
  // A child that was forked may have inherited the socket of a dead parent, who had listened.
  ucred peer{};
  return !base::peer_of(socket, &peer) || peer.pid <= 0 || !base::has_died(peer.pid);
}

/// Remove the sockets of dead members. @param live destIDs of the living. @return 0, -errno.
int Directory::sweep(std::set<uint32_t>* live, std::string* error) const {
  for (const std::string& name : names()) {
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
      *error = path_ + ": members cannot be looked for: " + base::why(trouble);
      return trouble.rc;
    }
  }
  return 0;
}

bool Directory::anybody() const {
  const std::vector<std::string> all = names();
  return std::any_of(all.begin(), all.end(), [&](const std::string& name) {
    uint32_t id = 0;
    return number_of(name, &id) && may_live(id, nullptr);
  });
}

std::vector<Directory::Board> Directory::sweep_boards(const std::set<uint32_t>& live) const {
  std::vector<Board> boards;
  for (const std::string& name : names()) {
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
    return fail(error, -EINVAL, path_ + ": no " + std::to_string(ids) + " destIDs from there on");
  }
  if (!all_free(taken, first, ids)) {
    return fail(error, -EBUSY,
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
      return fail_at(error, -errno, path_ + "/" + other, "made");
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
      return fail(error, -EINVAL,
                  path_ + ": board " + seat.board + " has " + std::to_string(board.ids) +
                      " queue pairs from destID " + std::to_string(board.first) +
                      "; give the same qps= and id=");
    }
    *first = board.first;
    return 0;
  }
  // The others of the board come later: all of its destIDs have to be free.
  if (!all_free(taken, *first, seat.ids)) {
    return fail(error, -EBUSY,
                path_ + ": destID " + std::to_string(*taken.lower_bound(*first)) +
                    " is in use; give the board another id=, or none");
  }
  const int rc = write_board({seat.board, *first, seat.ids});
  return rc == 0 ? 0 : fail(error, rc, path_ + ": no file for board " + seat.board);
}

int Directory::listen_at(uint32_t id, std::string* error) {
  base::Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_in(folder_, std::to_string(id));
  // fchmod: the mode that bind() gives to the path.
  if (!fd.valid() || fchmod(fd.get(), 0600) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    const int rc = -errno;
    *error = path_ + ": no socket for destID " + std::to_string(id) + ": " + std::strerror(-rc) +
             base::remedy_of(rc);
    return rc;
  }
  listener_ = std::move(fd);
  return 0;
}

Directory::Called Directory::connect(uint32_t id, base::Fd* out, base::Trouble* trouble) const {
  base::Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_in(folder_, std::to_string(id));
  if (fd.valid() &&
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    *out = std::move(fd);
    return Called::kConnected;
  }
  const int rc = -errno;
  if (fd.valid() && (rc == -ENOENT || rc == -ECONNREFUSED)) {
    return Called::kNobody;
  }
  if (fd.valid() && rc == -EAGAIN) {
    return Called::kBusy;
  }
  if (trouble != nullptr) {
    *trouble = {fd.valid() ? "connect" : "socket", rc};
  }
  return Called::kTrouble;
}

// Call it with the lock held and no member there.
void Directory::remove_folder() {
  for (const std::string& name : names()) {
    if (name != kLockName && name != "." && name != "..") {
      unlinkat(folder_.get(), name.c_str(), 0);
    }
  }
  // The lock last: a process that waits for it sees that it has no name any more.
  unlinkat(folder_.get(), kLockName, 0);
  unlinkat(parent_.get(), fabric_.c_str(), AT_REMOVEDIR);
  rmdir(user_path_.c_str());  // not while another fabric is in it
}

/// Remove folders of fabrics whose members were all killed: no process will join them again.
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
    std::string ignored;  // another process removes it then
    int rc = 0;
    if (other.parent_.valid() && other.folder_.valid() &&
        other.try_lock(&rc, &ignored) == Step::kDone && !other.anybody()) {
      other.remove_folder();
    }
  }
}

}  // namespace rio::wire::shm
