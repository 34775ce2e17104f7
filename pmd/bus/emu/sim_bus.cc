#include "pmd/bus/emu/sim_bus.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/shared_memory.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/unix_socket.hpp"
#include "base/wake_fd.hpp"
#include "fpga/cardsim/listen_protocol.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {
namespace {

using cardsim::protocol::kPageBytes;
using cardsim::protocol::Reply;
using cardsim::protocol::Request;
using cardsim::protocol::Verb;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kAnswerWithin(5000);
constexpr milliseconds kTryEvery(10);

/// Where bus addresses begin: far from any pointer, so that mixing the two up is refused.
constexpr uint64_t kFirstIova = 1ull << 52;

/// Explain why a socket cannot be connected to, with the remedy. @param rc -errno.
[[nodiscard]] std::string why_no_connection(const std::string& path, int rc) {
  struct stat info {};
  const bool seen = stat(path.c_str(), &info) == 0;
  switch (-rc) {
    case ENOENT:
    case ECONNREFUSED:
      return std::string("no program listens there: ") + std::strerror(-rc) +
             "; start rio-cardsim --card listen:socket=" + path;
    case EACCES:
    case EPERM:
      if (seen && info.st_uid != geteuid()) {
        return "the socket belongs to user " + std::to_string(info.st_uid) +
               ", this process is of user " + std::to_string(geteuid()) +
               "; run rio-cardsim and this program as one user";
      }
      return std::string("the socket cannot be reached: ") + std::strerror(-rc) +
             (seen ? "; its mode or a security module denies access"
                   : "; a folder on its path is closed to this user");
    case EAGAIN:
      return "rio-cardsim does not accept a connection; is it stopped?";
    case EPROTOTYPE:
    case ENOTSOCK:
      return "this is not a socket of rio-cardsim; give the path of its --card listen:socket=";
    case ENAMETOOLONG:
      return "a socket's path has at most 107 characters; use a shorter one";
    default:
      return base::why({"no connection to the socket", rc});
  }
}

/// A connection (fpga/cardsim/listen_protocol.hpp) and the memory shown to its server. When the
/// server goes, its BAR would stay as it was: a thread that sleeps on the socket then makes it read
/// all ones, as a card does that has left its bus, and wakes threads that wait for an interrupt.
class SimBus final : public Bus {
 public:
  explicit SimBus(const std::string& socket_path)
      : path_(socket_path), name_("sim:" + socket_path) {}
  SimBus(const SimBus&) = delete;
  SimBus& operator=(const SimBus&) = delete;
  ~SimBus() override;

  /// Call once. @return as open_sim_bus().
  [[nodiscard]] int open(uint32_t wait_ms);

  Mmio bar() override { return {bar_, bar_bytes_}; }
  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override;
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* /*runs*/) override {
    base::log_error(
        "%s: memory of the program's own (%p, %zu bytes) cannot be shown to a card in another "
        "process; take it from alloc(), or let it be copied",
        name_.c_str(), va, len_bytes);
    return -ENOTSUP;
  }
  int dma_unmap(void* /*va*/, size_t /*len_bytes*/) override {
    return -ENOENT;  // nothing was ever mapped
  }
  int irq_fd(uint32_t vector) override {
    return vector + 1 < fds_.size() ? fds_[vector + 1].get() : -ENOTSUP;
  }
  const std::string& name() const override { return name_; }

 private:
  /// Memory of dma_alloc().
  struct Area {
    uint64_t iova = 0;
    base::SharedMemory memory;
  };

  [[nodiscard]] int connect(uint32_t wait_ms);
  [[nodiscard]] int greet();
  [[nodiscard]] int take_bar(const Reply& reply);
  [[nodiscard]] int watch();
  void await_end();
  void card_is_gone();
  [[nodiscard]] int ask(const Request& request, int fd, Reply* reply, std::vector<base::Fd>* fds);
  [[nodiscard]] int ask_for(const Request& request, int fd, const char* what);

  /// Whether this process opened it, rather than being forked since: a forked child has no watcher
  /// and a BAR that reads all ones, and must not speak in its parent's name.
  [[nodiscard]] bool is_ours() const { return owner_ == getpid(); }

  const std::string path_;
  const std::string name_;
  const int owner_ = getpid();
  base::Fd socket_;
  uint8_t* bar_ = nullptr;
  size_t bar_bytes_ = 0;
  std::vector<base::Fd> fds_;  // the BAR, then an eventfd for each vector
  base::Fd stop_;
  std::jthread watcher_;
  std::map<void*, Area> areas_;
  uint64_t next_iova_ = kFirstIova;
};

int SimBus::open(uint32_t wait_ms) {
  if (const int rc = connect(wait_ms); rc != 0) {
    base::log_error("%s: %s", name_.c_str(), why_no_connection(path_, rc).c_str());
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
  }
  const int rc = greet();
  return rc != 0 ? rc : watch();
}

SimBus::~SimBus() {
  if (watcher_.joinable() && !is_ours()) {
    watcher_.detach();
  } else if (watcher_.joinable()) {
    base::wake(stop_.get());
    watcher_.join();
    shutdown(socket_.get(), SHUT_RDWR);  // a forked child may have the socket too
  }
  socket_.reset();  // the card goes with its user, and uses nothing afterwards
  if (bar_ != nullptr) {
    base::unmap_shared(bar_);
  }
}

int SimBus::connect(uint32_t wait_ms) {
  const auto deadline = steady_clock::now() + milliseconds(wait_ms);
  for (;;) {
    const int rc = base::connect_to(path_, SOCK_SEQPACKET, &socket_);
    const bool later = rc == -ENOENT || rc == -ECONNREFUSED || rc == -EAGAIN;
    if (!later || steady_clock::now() >= deadline) {
      return rc;
    }
    std::this_thread::sleep_for(kTryEvery);
  }
}

int SimBus::greet() {
  Reply reply;
  int rc = ask(Request{}, -1, &reply, &fds_);
  if (rc == 0) {
    rc = reply.status;
  }
  if (rc == -EBUSY) {
    base::log_error("%s: the card is in use by another program; end that one first", name_.c_str());
    return rc;
  }
  if (rc == 0) {
    rc = take_bar(reply);
  }
  if (base::is_shortage(rc) || rc == -EPERM || rc == -EACCES || rc == -ENOSYS) {
    base::log_error("%s: the card cannot be taken over: %s", name_.c_str(),
                    base::why({"recvmsg, or mmap of its BAR", rc}).c_str());
  } else if (rc != 0) {
    base::log_error("%s: no answer of a rio-cardsim of this release: %s; is it the right socket?",
                    name_.c_str(), std::strerror(-rc));
  }
  return rc;
}

int SimBus::take_bar(const Reply& reply) {
  const size_t bytes = reply.bar_bytes;
  if (bytes < 2 * regs::kQpStrideBytes || bytes > (regs::kMaxQps + 1) * regs::kQpStrideBytes ||
      !std::has_single_bit(bytes) || reply.vectors > cardsim::protocol::kVectorsMax ||
      fds_.size() != 1u + reply.vectors) {
    return -EPROTO;
  }
  // Else the server could make it smaller, and an access to it would kill us.
  const int fd = fds_.front().get();
  struct stat info {};
  if ((fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_WRITE)) != F_SEAL_SHRINK ||
      fstat(fd, &info) != 0 || static_cast<size_t>(info.st_size) < bytes) {
    return -EPROTO;
  }
  void* const va = base::map_shared(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                    base::ChildFinds::kOnes);
  if (va == MAP_FAILED) {
    return -errno;
  }
  bar_ = static_cast<uint8_t*>(va);
  bar_bytes_ = bytes;
  return 0;
}

int SimBus::watch() {
  stop_ = base::make_wake_fd();
  if (!stop_.valid()) {
    const int rc = -errno;
    base::log_error("%s: %s", name_.c_str(), base::why({"eventfd", rc}).c_str());
    return rc;
  }
  const int rc = base::start_thread(
      "rio-sim", [this](const std::stop_token& /*stop*/) { await_end(); }, &watcher_);
  if (rc != 0) {
    base::log_error("%s: %s", name_.c_str(), base::why_no_thread(rc).c_str());
  }
  return rc;
}

/// Wait for the end of the connection only: ask() reads answers.
void SimBus::await_end() {
  pollfd fds[] = {{socket_.get(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
  while (poll(fds, std::size(fds), -1) < 0) {
  }
  if (fds[0].revents != 0) {
    card_is_gone();
  }
}

void SimBus::card_is_gone() {
  for (size_t at = 0; at < bar_bytes_; at += sizeof(uint32_t)) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(bar_ + at), regs::kAllOnes, __ATOMIC_RELEASE);
  }
  for (size_t i = 1; i < fds_.size(); ++i) {
    base::wake(fds_[i].get());
  }
}

int SimBus::ask(const Request& request, int fd, Reply* reply, std::vector<base::Fd>* fds) {
  if (const int rc = base::send_with_fds(socket_, std::as_bytes(std::span(&request, 1)),
                                         std::span(&fd, fd >= 0 ? 1u : 0u));
      rc != 0 && rc != -EPIPE && rc != -ECONNRESET) {
    return rc;
  }
  // A server that refuses us does not wait for the question: its answer may be there all the same,
  // behind the word that the socket is closed.
  bool reset = false;
  const auto deadline = steady_clock::now() + kAnswerWithin;
  for (;;) {
    const ssize_t got =
        base::receive_with_fds(socket_, std::as_writable_bytes(std::span(reply, 1)), fds);
    if (got == sizeof *reply && reply->magic == cardsim::protocol::kMagic &&
        reply->version == cardsim::protocol::kVersion) {
      return 0;
    }
    if (got == -ECONNRESET && !reset) {
      reset = true;
      continue;
    }
    if (got >= 0 || got == -ECONNRESET) {
      return got > 0 ? -EPROTO : -ENODEV;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (got != -EAGAIN && got != -EINTR) {
      return static_cast<int>(got);
    }
    if (left.count() <= 0) {
      return -ETIMEDOUT;
    }
    pollfd answer{socket_.get(), POLLIN, 0};
    static_cast<void>(poll(&answer, 1, static_cast<int>(left.count()) + 1));
  }
}

int SimBus::ask_for(const Request& request, int fd, const char* what) {
  if (!is_ours()) {
    return -ENODEV;
  }
  Reply reply;
  std::vector<base::Fd> none;
  int rc = ask(request, fd, &reply, &none);
  if (rc == -ENODEV) {
    base::log_error("%s: %s: rio-cardsim has gone; start it again and open the card anew",
                    name_.c_str(), what);
    return rc;
  }
  if (rc == 0) {
    rc = reply.status;
  } else {
    // An answer that comes later would be taken for that of the next request.
    shutdown(socket_.get(), SHUT_RDWR);
  }
  if (rc != 0) {
    base::log_error("%s: %s of %llu bytes: %s; is rio-cardsim stopped, or short of memory?",
                    name_.c_str(), what, static_cast<unsigned long long>(request.len_bytes),
                    std::strerror(-rc));
  }
  return rc;
}

int SimBus::dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  const size_t len = (len_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  if (len_bytes == 0 || len < len_bytes || !std::has_single_bit(align_bytes)) {
    return -EINVAL;
  }
  Area area;
  int rc = base::SharedMemory::create(len, align_bytes, base::SharedMemory::Others::kWrite,
                                      &area.memory);
  if (rc != 0) {
    base::log_error(
        "%s: no %zu bytes for the card's rings and buffers: %s; take smaller rings or give "
        "more memory",
        name_.c_str(), len_bytes, std::strerror(-rc));
    return rc;
  }
  area.iova = (next_iova_ + align_bytes - 1) & ~(static_cast<uint64_t>(align_bytes) - 1);
  if (rc = ask_for({.verb = Verb::kMap, .iova = area.iova, .len_bytes = len},
                   area.memory.fd().get(), "showing memory");
      rc != 0) {
    return rc;
  }
  uint8_t* const va = area.memory.va();
  next_iova_ = area.iova + len + kPageBytes;  // a hole between any two
  *out = {va, area.iova, len_bytes};
  areas_.emplace(va, std::move(area));
  return 0;
}

void SimBus::dma_free(const DmaMemory& memory) {
  const auto it = areas_.find(memory.va);
  if (it == areas_.end()) {
    return;
  }
  // A failure is logged; the server's own mapping keeps the memory, not ours.
  static_cast<void>(
      ask_for({.verb = Verb::kUnmap, .iova = it->second.iova}, -1, "taking memory back"));
  areas_.erase(it);
}

}  // namespace

int open_sim_bus(const name::Sim& card, std::unique_ptr<Bus>* out) {
  auto bus = std::make_unique<SimBus>(card.socket);
  const int rc = bus->open(card.wait_ms);
  if (rc == 0) {
    *out = std::move(bus);
  }
  return rc;
}

}  // namespace rio::pmd
