#include "fpga/sim/shm/exchange.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>

#include "base/no_cancel.hpp"
#include "fpga/sim/unix_socket.hpp"

namespace rio::sim::shm {
namespace {

constexpr uint32_t kIdsMax = 31;  // queue pairs of a card
constexpr uint32_t kTriesMax = 100;
constexpr auto kTryAgain = std::chrono::milliseconds(1);
constexpr int kEventsMax = 32;

[[nodiscard]] int make_bell(Fd* out) {
  Fd fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd.valid()) {
    return -errno;
  }
  *out = std::move(fd);
  return 0;
}

/// By any thread, also one that may not be unwound.
void ring(const Fd& bell) {
  const base::NoCancel no_cancel;
  eventfd_write(bell.get(), 1);
}

void drain(int fd) {
  uint64_t times = 0;
  static_cast<void>(!read(fd, &times, sizeof times));
}

[[nodiscard]] bool covers(const Link& link, uint32_t id) {
  return id - link.first_id < link.ids;
}

[[nodiscard]] bool overlap(const Link& link, const Greeting& other) {
  return other.first_id - link.first_id < link.ids || link.first_id - other.first_id < other.ids;
}

[[nodiscard]] bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

/// Also if a child that was forked has the socket too.
void hang_up(const Fd& socket) {
  if (socket.valid()) {
    shutdown(socket.get(), SHUT_RDWR);
  }
}

[[nodiscard]] bool peer_of(const Fd& socket, ucred* out) {
  socklen_t len = sizeof *out;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, out, &len) == 0;
}

}  // namespace

Exchange::Exchange(std::unique_ptr<Directory> directory, std::atomic<bool>* news)
    : directory_(std::move(directory)), owner_(getpid()), news_flag_(news) {}

Exchange::~Exchange() {
  if (owner_ != getpid()) {
    // Forked since start(): there is no such thread here, and the connections are the parent's.
    if (thread_.joinable()) {
      thread_.detach();
    }
    return;
  }
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    ring(order_);
    thread_.join();
  }
  for (const LinkPtr& link : links_) {
    hang_up(link->socket);
  }
}

int Exchange::start() {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid() || getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_) {
    return -errno;
  }
  int rc = make_bell(&order_);
  rc = rc == 0 ? watch(order_.get(), Fdkind::kBell, nullptr) : rc;
  rc = rc == 0 ? watch(directory_->listener().get(), Fdkind::kSocket, nullptr) : rc;
  if (rc != 0) {
    return rc;
  }
  sigset_t all;
  sigset_t before;
  sigfillset(&all);  // signals are for the program's own threads
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return 0;
}

void Exchange::want(uint32_t id) {
  {
    const std::lock_guard lock(mutex_);
    want_orders_.push_back(id);
  }
  ring(order_);
}

void Exchange::cut(const LinkPtr& link) {
  {
    const std::lock_guard lock(mutex_);
    cut_orders_.push_back(link);
  }
  ring(order_);
}

void Exchange::poke_soon() {
  {
    const std::lock_guard lock(mutex_);
    poke_order_ = true;
  }
  ring(order_);
}

bool Exchange::take(News* out) {
  const std::lock_guard lock(mutex_);
  if (news_.empty()) {
    return false;
  }
  *out = std::move(news_.front());
  news_.pop_front();
  return true;
}

void Exchange::set_poke(Poke poke, void* ctx) {
  const std::lock_guard lock(poke_mutex_);
  poke_ = poke;
  poke_ctx_ = ctx;
}

void Exchange::post(News news) {
  const std::lock_guard lock(mutex_);
  news_.push_back(std::move(news));
  // release: the news; the reader takes the mutex.
  news_flag_->store(true, std::memory_order_release);
  rung_ = true;
}

void Exchange::run() {
  epoll_event events[kEventsMax];
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events, kEventsMax, timeout_ms());
    for (int i = 0; i < count; ++i) {
      on_event(events[i].data.fd);
    }
    {
      const std::lock_guard lock(mutex_);
      if (stop_) {
        return;
      }
    }
    call_wanted();
    if (std::exchange(rung_, false) || (again_ && count == 0)) {
      const std::lock_guard lock(poke_mutex_);
      again_ = poke_ != nullptr && poke_(poke_ctx_);
    }
  }
}

int Exchange::watch(int fd, Fdkind kind, const LinkPtr& link) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return -errno;
  }
  watched_[fd] = {kind, link};
  return 0;
}

void Exchange::forget(int fd) {
  if (fd >= 0 && watched_.erase(fd) != 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
}

// A number may have been closed, and given again, by an event before this one.
void Exchange::on_event(int fd) {
  const auto it = watched_.find(fd);
  if (it == watched_.end()) {
    return;
  }
  const Watched watched = it->second;
  if (watched.link == nullptr) {
    if (watched.kind == Fdkind::kBell) {
      take_orders();
    } else {
      accept();
    }
  } else if (watched.kind == Fdkind::kSocket) {
    on_message(watched.link);
  } else if (watched.kind == Fdkind::kBell) {
    drain(fd);
    rung_ = true;
  } else if (readable(fd)) {
    down(watched.link);
  }
}

void Exchange::take_orders() {
  drain(order_.get());
  std::vector<uint32_t> wants;
  std::vector<LinkPtr> cuts;
  {
    const std::lock_guard lock(mutex_);
    wants.swap(want_orders_);
    cuts.swap(cut_orders_);
    rung_ = rung_ || std::exchange(poke_order_, false);
  }
  for (const LinkPtr& link : cuts) {
    down(link);
  }
  for (const uint32_t id : wants) {
    wanted_.try_emplace(id);
  }
}

int Exchange::timeout_ms() const {
  const bool waits = again_ || std::any_of(wanted_.begin(), wanted_.end(), [](const auto& entry) {
                       return entry.second.next != Clock::time_point::max();
                     });
  return waits ? 1 : -1;
}

void Exchange::call_wanted() {
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    auto& [id, wanted] = *it;
    const auto link = std::find_if(links_.begin(), links_.end(), [id = id](const LinkPtr& l) {
      return covers(*l, id) || (l->ours && l->wanted == id);
    });
    bool over = false;
    if (link != links_.end()) {
      over = (*link)->state == Link::kUp;
      wanted.next = Clock::time_point::max();  // until something happens to the link
    } else if (wanted.next <= Clock::now()) {
      bool nobody = false;
      call(id, wanted, &nobody);
      nobody = nobody || wanted.tries > kTriesMax;
      if (nobody) {
        post({News::kNobody, id, nullptr});
        over = true;
      }
    }
    it = over ? wanted_.erase(it) : std::next(it);
  }
}

void Exchange::call(uint32_t id, Wanted& wanted, bool* nobody) {
  ++wanted.tries;
  wanted.next = Clock::now() + kTryAgain;
  auto link = std::make_shared<Link>();
  int rc = directory_->connect(id, &link->socket);
  if (rc == -EAGAIN) {
    --wanted.tries;
    return;  // many call there
  }
  Fd memory;
  rc = rc == 0 && !know(*link) ? -EPERM : rc;
  rc = rc == 0 ? Half::create(&link->mine, &memory) : rc;
  rc = rc == 0 ? make_bell(&link->bell) : rc;
  if (rc != 0) {
    *nobody = !lacks(rc);
    return;
  }
  link->state = Link::kCalled;
  link->ours = true;
  link->wanted = id;
  if (say(*link, Say::kCall, &memory) == 0 &&
      watch(link->socket.get(), Fdkind::kSocket, link) == 0) {
    links_.push_back(link);
    wanted.next = Clock::time_point::max();  // until something happens to the link
  }
}

// Whether it is this process that has too little of something. It tries again, but is told.
bool Exchange::lacks(int rc) {
  const bool lacks = rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOSPC;
  if (lacks) {
    lacking_.store(rc, std::memory_order_relaxed);
    rung_ = true;
  }
  return lacks;
}

// Who is at the other end? The pidfd is of that process if something comes by the socket later on:
// one that has died says nothing, whoever has its number now.
bool Exchange::know(Link& link) const {
  ucred peer{};
  if (!peer_of(link.socket, &peer) || peer.uid != geteuid()) {
    return false;
  }
  link.pid = peer.pid;
  if (peer.pid > 0) {
    link.process = Fd(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  }
  return true;
}

int Exchange::say(const Link& link, Say what, const Fd* memory) const {
  const Greeting greeting{.say = what,
                          .nonce = nonce_,
                          .first_id = directory_->first_id(),
                          .ids = directory_->ids(),
                          .nonce_at = reinterpret_cast<uintptr_t>(&nonce_)};
  const int fds[] = {memory == nullptr ? -1 : memory->get(), link.bell.get()};
  return send_with_fds(link.socket, std::as_bytes(std::span(&greeting, 1)),
                       std::span(fds, memory == nullptr ? 0 : 2));
}

void Exchange::accept() {
  Fd socket;
  int rc = 0;
  while ((rc = accept_from(directory_->listener(), &socket)) == 0) {
    auto link = std::make_shared<Link>();
    link->socket = std::move(socket);
    if (know(*link) && watch(link->socket.get(), Fdkind::kSocket, link) == 0) {
      links_.push_back(link);
    }
  }
  if (rc != -EAGAIN) {
    static_cast<void>(lacks(rc));
    std::this_thread::sleep_for(kTryAgain);  // no descriptors left: the caller waits
  }
}

void Exchange::on_message(const LinkPtr& link) {
  Greeting greeting;
  std::vector<Fd> fds;
  const ssize_t got =
      receive_with_fds(link->socket, std::as_writable_bytes(std::span(&greeting, 1)), &fds);
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  if (got != sizeof greeting || !on_greeting(link, greeting, fds)) {
    down(link);
  }
}

// false: the link ends.
bool Exchange::on_greeting(const LinkPtr& link, const Greeting& greeting, std::vector<Fd>& fds) {
  if (greeting.magic != kMagic || greeting.version != kVersion) {
    return false;
  }
  if (link->state == Link::kAnswered) {
    if (greeting.say != Say::kReady || greeting.nonce != link->nonce) {
      return false;
    }
    up(link);
    return true;
  }
  const Say expected = link->state == Link::kAccepted ? Say::kCall : Say::kAnswer;
  if ((link->state != Link::kAccepted && link->state != Link::kCalled) ||
      greeting.say != expected || fds.size() != 2 || !may_be(*link, greeting) ||
      !settle_others(link, greeting) || Half::map(fds[0], &link->theirs) != 0) {
    return false;
  }
  link->their_bell = std::move(fds[1]);
  link->nonce = greeting.nonce;
  link->nonce_at = greeting.nonce_at;
  link->first_id = greeting.first_id;
  link->ids = greeting.ids;
  if (link->state == Link::kCalled) {
    if (say(*link, Say::kReady, nullptr) != 0) {
      return false;
    }
    up(link);
    return true;
  }
  Fd memory;
  int rc = Half::create(&link->mine, &memory);
  rc = rc == 0 ? make_bell(&link->bell) : rc;
  if (rc != 0 || say(*link, Say::kAnswer, &memory) != 0) {
    static_cast<void>(lacks(rc));
    return false;
  }
  link->state = Link::kAnswered;
  return true;
}

// Whether those destIDs are its own: it listens there.
bool Exchange::may_be(const Link& link, const Greeting& greeting) const {
  const uint32_t first = greeting.first_id;
  Link self;
  self.first_id = directory_->first_id();
  self.ids = directory_->ids();
  if (first == 0 || greeting.ids == 0 || greeting.ids > kIdsMax ||
      first + greeting.ids - 1 < first || overlap(self, greeting) ||
      (link.ours && link.wanted - first >= greeting.ids)) {
    return false;
  }
  for (uint32_t i = 0; i < greeting.ids; ++i) {
    Fd socket;
    ucred peer{};
    if (link.ours && first + i == link.wanted) {
      continue;
    }
    if (directory_->connect(first + i, &socket) != 0 || !peer_of(socket, &peer) ||
        peer.pid != link.pid) {
      return false;
    }
  }
  return true;
}

// Two may call each other at the same time; and a new owner of a destID may call before the old
// one's death was heard of. @return false: this link is one too many.
bool Exchange::settle_others(const LinkPtr& link, const Greeting& greeting) {
  const std::vector<LinkPtr> all = links_;
  for (const LinkPtr& other : all) {
    if (other == link) {
      continue;
    }
    const bool same = other->ids != 0 && overlap(*other, greeting);
    if (same && other->nonce == greeting.nonce) {
      return false;  // connected already
    }
    if (same) {
      down(other);  // of a former life
    } else if (!link->ours && other->state == Link::kCalled &&
               other->wanted - greeting.first_id < greeting.ids) {
      if (directory_->first_id() < greeting.first_id) {
        return false;  // the call of the lower one counts
      }
      down(other);
    }
  }
  return true;
}

void Exchange::up(const LinkPtr& link) {
  link->state = Link::kUp;
  // A process that died meanwhile is told by the next look.
  if (watch(link->bell.get(), Fdkind::kBell, link) != 0 ||
      (link->process.valid() && watch(link->process.get(), Fdkind::kProcess, link) != 0)) {
    down(link);
    return;
  }
  post({News::kCame, link->first_id, link});
}

void Exchange::down(const LinkPtr& link) {
  if (link->state == Link::kDown) {
    return;
  }
  const bool was_up = link->state == Link::kUp;
  link->state = Link::kDown;
  forget(link->socket.get());
  forget(link->process.get());
  forget(link->bell.get());
  hang_up(link->socket);
  link->socket.reset();
  std::erase(links_, link);
  for (auto& [id, wanted] : wanted_) {
    if (wanted.next == Clock::time_point::max()) {
      wanted.next = Clock::now() + kTryAgain;
    }
  }
  if (was_up) {
    post({News::kGone, link->first_id, link});
  }
}

}  // namespace rio::sim::shm
