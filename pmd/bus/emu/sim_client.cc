#include "pmd/bus/emu/sim_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/unix_socket.hpp"
#include "base/wake_fd.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {
namespace {

using cardsim::protocol::Reply;
using cardsim::protocol::Request;
using cardsim::protocol::Verb;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kAnswerWithin(5000);
constexpr milliseconds kTryEvery(10);

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

}  // namespace

int SimClient::open(const std::string& socket_path, uint32_t wait_ms,
                    std::unique_ptr<SimClient>* out) {
  std::unique_ptr<SimClient> client(new SimClient(socket_path));
  if (const int rc = client->connect(wait_ms); rc != 0) {
    base::log_error("sim:%s: %s", socket_path.c_str(), why_no_connection(socket_path, rc).c_str());
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
  }
  if (const int rc = client->greet(); rc != 0) {
    return rc;
  }
  if (const int rc = client->watch(); rc != 0) {
    return rc;
  }
  *out = std::move(client);
  return 0;
}

SimClient::~SimClient() {
  if (watcher_.joinable() && !is_ours()) {
    watcher_.detach();
  } else if (watcher_.joinable()) {
    base::wake(stop_.get());
    watcher_.join();
    shutdown(socket_.get(), SHUT_RDWR);  // a forked child may have the socket too
  }
  if (bar_ != nullptr) {
    base::unmap_shared(bar_);
  }
}

int SimClient::connect(uint32_t wait_ms) {
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

int SimClient::greet() {
  Reply reply;
  int rc = ask(Request{}, -1, &reply, &fds_);
  if (rc == 0) {
    rc = reply.status;
  }
  if (rc == -EBUSY) {
    base::log_error("sim:%s: the card is in use by another program; end that one first",
                    path_.c_str());
    return rc;
  }
  if (rc == 0) {
    rc = take_bar(reply);
  }
  if (base::is_shortage(rc) || rc == -EPERM || rc == -EACCES || rc == -ENOSYS) {
    base::log_error("sim:%s: the card cannot be taken over: %s", path_.c_str(),
                    base::why({"recvmsg, or mmap of its BAR", rc}).c_str());
  } else if (rc != 0) {
    base::log_error(
        "sim:%s: no answer of a rio-cardsim of this release: %s; is it the right socket?",
        path_.c_str(), std::strerror(-rc));
  }
  return rc;
}

int SimClient::take_bar(const Reply& reply) {
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

int SimClient::watch() {
  stop_ = base::make_wake_fd();
  if (!stop_.valid()) {
    const int rc = -errno;
    base::log_error("sim:%s: %s", path_.c_str(), base::why({"eventfd", rc}).c_str());
    return rc;
  }
  const int rc = base::start_thread(
      "rio-sim", [this](const std::stop_token& /*stop*/) { await_end(); }, &watcher_);
  if (rc != 0) {
    base::log_error("sim:%s: %s", path_.c_str(), base::why_no_thread(rc).c_str());
  }
  return rc;
}

/// Wait for the end of the connection only: ask() reads answers.
void SimClient::await_end() {
  pollfd fds[] = {{socket_.get(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
  while (poll(fds, std::size(fds), -1) < 0) {
  }
  if (fds[0].revents != 0) {
    card_is_gone();
  }
}

void SimClient::card_is_gone() {
  for (size_t at = 0; at < bar_bytes_; at += sizeof(uint32_t)) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(bar_ + at), regs::kAllOnes, __ATOMIC_RELEASE);
  }
  for (size_t i = 1; i < fds_.size(); ++i) {
    base::wake(fds_[i].get());
  }
}

int SimClient::irq_fd(uint32_t vector) const {
  return vector + 1 < fds_.size() ? fds_[vector + 1].get() : -ENOTSUP;
}

int SimClient::ask(const Request& request, int fd, Reply* reply, std::vector<base::Fd>* fds) {
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

int SimClient::ask_for(const Request& request, int fd, const char* what) {
  if (!is_ours()) {
    return -ENODEV;
  }
  Reply reply;
  std::vector<base::Fd> none;
  int rc = ask(request, fd, &reply, &none);
  if (rc == -ENODEV) {
    base::log_error("sim:%s: %s: rio-cardsim has gone; start it again and open the card anew",
                    path_.c_str(), what);
    return rc;
  }
  if (rc == 0) {
    rc = reply.status;
  } else {
    // An answer that comes later would be taken for that of the next request.
    shutdown(socket_.get(), SHUT_RDWR);
  }
  if (rc != 0) {
    base::log_error("sim:%s: %s of %llu bytes: %s; is rio-cardsim stopped, or short of memory?",
                    path_.c_str(), what, static_cast<unsigned long long>(request.len_bytes),
                    std::strerror(-rc));
  }
  return rc;
}

int SimClient::map(int memfd, uint64_t iova, uint64_t len_bytes) {
  return ask_for({.verb = Verb::kMap, .iova = iova, .len_bytes = len_bytes}, memfd,
                 "showing memory");
}

int SimClient::unmap(uint64_t iova) {
  return ask_for({.verb = Verb::kUnmap, .iova = iova}, -1, "taking memory back");
}

}  // namespace rio::pmd
