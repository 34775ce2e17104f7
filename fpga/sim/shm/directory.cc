#include "fpga/sim/shm/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace rio::sim::shm {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::string_view kBoardPrefix = "board-";
constexpr std::string_view kNewSuffix = ".new";
constexpr uint32_t kLastId = 0xFFFFFFFE;
constexpr int kBacklog = 4096;
constexpr auto kLockWait = std::chrono::seconds(5);  // for one holder
constexpr auto kLockWaitAll = std::chrono::seconds(120);
constexpr uint32_t kSweepMax = 64;  // other fabrics that one who joins looks at

[[nodiscard]] int fail(std::string* error, int rc, const std::string& text) {
  *error = text;
  if (rc != 0) {
    *error += ": ";
    *error += std::strerror(-rc);
  }
  return rc;
}

/// What to do about it, as far as it is known.
[[nodiscard]] const char* remedy(int rc) {
  switch (-rc) {
    case ENOSPC:
    case EDQUOT:
      return "; make room, or set RIO_RUNTIME_DIR to a folder of yours";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

/// A folder of this user alone, made if need be. Not followed if it is a link.
[[nodiscard]] int open_own_folder(int at, const std::string& name, const std::string& path, Fd* out,
                                  std::string* error) {
  if (mkdirat(at, name.c_str(), 0700) != 0 && errno != EEXIST) {
    const int rc = -errno;
    return fail(error, rc == -ENOENT ? -EAGAIN : rc,
                path + " cannot be made; make room, or set RIO_RUNTIME_DIR to a folder of yours");
  }
  Fd fd(openat(at, name.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    const int rc = -errno;
    return fail(error, rc == -ENOENT ? -EAGAIN : rc, path + " cannot be opened" + remedy(rc));
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return fail(error, -errno, path);
  }
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return fail(error, -EPERM,
                path +
                    " is open to other users; remove it, or set RIO_RUNTIME_DIR to a folder of "
                    "yours");
  }
  *out = std::move(fd);
  return 0;
}

[[nodiscard]] bool number_of(std::string_view name, uint32_t* out) {
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, *out);
  return error == std::errc{} && at == end && std::to_string(*out) == name;
}

/// The address of a socket in a folder, however long that folder's path is.
[[nodiscard]] sockaddr_un address_in(const Fd& folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

[[nodiscard]] std::vector<std::string> names_in(const Fd& folder) {
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
  int rc = -EAGAIN;
  // Whoever leaves last removes the folder that we have just opened: then there is a next one.
  for (int attempt = 0; rc == -EAGAIN && attempt < 1000; ++attempt) {
    std::unique_ptr<Directory> made(new Directory);
    rc = made->open_folder(seat.fabric, error);
    rc = rc == 0 ? made->lock(error) : rc;
    rc = rc == 0 ? made->take(seat, error) : rc;
    made->lock_.reset();
    if (rc == 0) {
      made->sweep_fabrics();
      *out = std::move(made);
    }
  }
  return rc;
}

Directory::~Directory() {
  if (ids_ == 0 || owner_ != getpid()) {
    return;
  }
  std::string ignored;  // the next one cleans up
  if (lock(&ignored) != 0) {
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

int Directory::open_folder(const std::string& fabric, std::string* error) {
  const char* base = std::getenv("RIO_RUNTIME_DIR");
  base = base == nullptr || *base == '\0' ? "/dev/shm" : base;
  const Fd root(open(base, O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return fail(error, -errno,
                std::string(base) + " cannot be opened; set RIO_RUNTIME_DIR to a folder of yours");
  }
  const std::string user = "riopmd-" + std::to_string(geteuid());
  user_path_ = std::string(base) + "/" + user;
  if (const int rc = open_own_folder(root.get(), user, user_path_, &parent_, error); rc != 0) {
    return rc;
  }
  fabric_ = fabric;
  path_ = user_path_ + "/" + fabric;
  return open_own_folder(parent_.get(), fabric, path_, &folder_, error);
}

/// Many that come at once wait for each other, on few cores for long; for one that does not go on
/// nobody does.
int Directory::lock(std::string* error) {
  using Clock = std::chrono::steady_clock;
  const auto last = Clock::now() + kLockWaitAll;
  auto until = Clock::now() + kLockWait;
  int64_t holder = 0;
  int rc = 0;
  while ((rc = try_lock(error)) == -EWOULDBLOCK) {
    const auto now = Clock::now();
    if (const int64_t next = last_locked(); next != holder) {
      holder = next;
      until = now + kLockWait;
    }
    if (now > until || now > last) {
      return fail(error, -ETIMEDOUT,
                  path_ +
                      "/lock is held by a process that does not go on; see who with fuser, and "
                      "end it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return rc;
}

/// @return -EWOULDBLOCK: somebody has it; -EAGAIN: the folder is gone.
int Directory::try_lock(std::string* error) {
  Fd fd(openat(folder_.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) {
    const int rc = -errno;
    return fail(error, rc == -ENOENT ? -EAGAIN : rc, path_ + "/lock cannot be opened" + remedy(rc));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK || errno == EINTR ? -EWOULDBLOCK
                                                  : fail(error, -errno, path_ + "/lock");
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || info.st_nlink == 0) {
    return fail(error, -EAGAIN, path_ + " went away");
  }
  lock_ = std::move(fd);
  static_cast<void>(futimens(lock_.get(), nullptr));  // others see that somebody else has it
  return 0;
}

/// When somebody took the lock, as the file tells it.
int64_t Directory::last_locked() const {
  struct stat info {};
  return fstatat(folder_.get(), kLockName, &info, AT_SYMLINK_NOFOLLOW) == 0
             ? int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec
             : 0;
}

std::vector<std::string> Directory::names() const {
  return names_in(folder_);
}

bool Directory::alive(uint32_t id) const {
  Fd socket;
  const int rc = connect(id, &socket);
  if (rc != 0) {
    return rc != -ECONNREFUSED && rc != -ENOENT;
  }
  // A child that was forked may have inherited the socket of a dead parent, who had listened.
  ucred peer{};
  socklen_t len = sizeof peer;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.pid <= 0 ||
         kill(peer.pid, 0) == 0 || errno != ESRCH;
}

// Removes the sockets of the dead. @return destIDs of the living.
std::set<uint32_t> Directory::sweep() const {
  std::set<uint32_t> live;
  for (const std::string& name : names()) {
    uint32_t id = 0;
    if (!number_of(name, &id)) {
      continue;
    }
    if (alive(id)) {
      live.insert(id);
    } else {
      unlinkat(folder_.get(), name.c_str(), 0);
    }
  }
  return live;
}

bool Directory::anybody() const {
  const std::vector<std::string> all = names();
  return std::any_of(all.begin(), all.end(), [&](const std::string& name) {
    uint32_t id = 0;
    return number_of(name, &id) && alive(id);
  });
}

std::vector<Directory::Board> Directory::sweep_boards(const std::set<uint32_t>& live) const {
  std::vector<Board> boards;
  for (const std::string& name : names()) {
    if (!name.starts_with(kBoardPrefix)) {
      continue;
    }
    char text[64] = {};
    const Fd fd(openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
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
  const Fd fd(openat(folder_.get(), fresh.c_str(),
                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid() ||
      write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      renameat(folder_.get(), fresh.c_str(), folder_.get(), name.c_str()) != 0) {
    return -errno;
  }
  return 0;
}

namespace {

/// The lowest `ids` in a row that are free.
[[nodiscard]] uint32_t lowest_free(const std::set<uint32_t>& taken, uint32_t ids) {
  uint32_t first = 1;
  for (const uint32_t id : taken) {
    if (id >= first && id - first < ids) {
      first = id + 1;
    }
  }
  return first;
}

[[nodiscard]] bool all_free(const std::set<uint32_t>& taken, uint32_t first, uint32_t ids) {
  const auto it = taken.lower_bound(first);
  return it == taken.end() || *it - first >= ids;
}

/// Where a member gets in who only wishes for `seat.id`; there if nothing is free.
[[nodiscard]] uint32_t next_free(const std::set<uint32_t>& taken, const Seat& seat) {
  constexpr uint32_t kEnd = 1u << 16;
  const uint32_t places = (kEnd - 1) / seat.id_step;
  uint32_t first = seat.id;
  for (uint32_t tried = 0; tried <= places; ++tried) {
    if (all_free(taken, first, seat.ids)) {
      return first;
    }
    first += seat.id_step;
    first = first + seat.ids >= kEnd ? seat.id_step : first;
  }
  return seat.id;
}

}  // namespace

int Directory::take(const Seat& seat, std::string* error) {
  const std::set<uint32_t> live = sweep();
  std::vector<Board> boards = sweep_boards(live);
  std::set<uint32_t> taken = live;
  for (const Board& board : boards) {
    for (uint32_t i = 0; board.name != seat.board && i < board.ids; ++i) {
      taken.insert(board.first + i);
    }
  }
  uint32_t first = seat.id != 0 ? seat.id : lowest_free(taken, seat.ids);
  if (seat.id != 0 && seat.id_step != 0 && seat.board.empty()) {
    first = next_free(taken, seat);
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
  for (uint32_t i = 0; i < ids; ++i) {
    const int rc = i == 0 ? listen_at(first, error)
                          : linkat(folder_.get(), std::to_string(first).c_str(), folder_.get(),
                                   std::to_string(first + i).c_str(), 0);
    if (rc != 0) {
      return rc == -1 ? fail(error, -errno, path_ + ": no name for a destID") : rc;
    }
  }
  first_ = first;
  ids_ = ids;
  owner_ = getpid();
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
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_in(folder_, std::to_string(id));
  // fchmod: the mode that bind() gives to the path.
  if (!fd.valid() || fchmod(fd.get(), 0600) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    const int rc = -errno;
    return fail(error, rc, path_ + ": no socket for destID " + std::to_string(id) + remedy(rc));
  }
  listener_ = std::move(fd);
  return 0;
}

int Directory::connect(uint32_t id, Fd* out) const {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_in(folder_, std::to_string(id));
  if (!fd.valid() ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return -errno;
  }
  *out = std::move(fd);
  return 0;
}

// With the lock held and nobody there.
void Directory::remove_folder() {
  for (const std::string& name : names()) {
    if (name != kLockName && name != "." && name != "..") {
      unlinkat(folder_.get(), name.c_str(), 0);
    }
  }
  // The lock last: who waits for it sees that it has no name any more.
  unlinkat(folder_.get(), kLockName, 0);
  unlinkat(parent_.get(), fabric_.c_str(), AT_REMOVEDIR);
  rmdir(user_path_.c_str());  // not while another fabric is in it
}

/// The folders of fabrics whose members were all killed, whom nobody else will ever join.
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
    other.parent_ = Fd(fcntl(parent_.get(), F_DUPFD_CLOEXEC, 0));
    other.folder_ = Fd(openat(parent_.get(), name.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    std::string ignored;  // then somebody else does it
    if (other.parent_.valid() && other.folder_.valid() && other.try_lock(&ignored) == 0 &&
        !other.anybody()) {
      other.remove_folder();
    }
  }
}

}  // namespace rio::sim::shm
