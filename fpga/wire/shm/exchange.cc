#include "fpga/wire/shm/exchange.hpp"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/peer_process.hpp"
#include "base/unix_socket.hpp"
#include "base/wake_fd.hpp"
#include "fpga/wire/member.hpp"

namespace rio::wire::shm {
namespace {

constexpr uint32_t kTriesMax = 100;
constexpr auto kTryAgain = std::chrono::milliseconds(1);
constexpr int kEventsMax = 32;
constexpr uint32_t kIdsMax = 31;  // most queue pairs of a card
constexpr size_t kFdsOfJoint = 2;

/// Whether retrying is useless. @param trouble -errno of this process; 0: none.
[[nodiscard]] bool is_final(int trouble) {
  return trouble != 0 && !base::is_shortage(trouble);
}

}  // namespace

Exchange::~Exchange() {
  thread_.stop();
  if (thread_.of_this_process()) {  // else the connections are the parent's
    for (const LinkPtr& link : links_) {
      shutdown(link->socket.get(), SHUT_RDWR);  // a forked child may have it, too
    }
  }
}

int Exchange::start(std::string* error) {
  if (const base::Trouble trouble = try_out()) {
    *error = "no connections to other processes: " + base::why(trouble);
    return trouble.rc;
  }
  return thread_.start(
      "rio-shm", [this](const std::stop_token& stop) { run(stop); }, error);
}

/// Opens the thread's descriptors, and tries once each call that connections need, so that a
/// forbidden call is reported when the card is opened.
base::Trouble Exchange::try_out() {
  if (getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_) {
    return base::failed("getrandom");
  }
  epoll_ = base::Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event none{};
  if (!epoll_.valid() || epoll_wait(epoll_.get(), &none, 1, 0) < 0) {
    return base::failed(epoll_.valid() ? "epoll_wait" : "epoll_create1");
  }
  Joint joint;
  std::vector<base::Fd> fds(2);
  bool sound = false;
  base::Trouble trouble = thread_.open();
  trouble = trouble ? trouble : watch(thread_.order().get(), Fdkind::kBell, nullptr);
  trouble = trouble ? trouble : watch(directory_->listener().get(), Fdkind::kSocket, nullptr);
  trouble = trouble ? trouble : joint.make(&fds[0]);
  return trouble ? trouble : joint.take(fds, &sound);
}

void Exchange::want(uint32_t id) {
  troubles_.set_unreachable(id, 1, 0);  // clears the result of the last try
  orders_.post({nullptr, id});
  thread_.wake();
}

void Exchange::cut(const LinkPtr& link) {
  orders_.post({link, 0});
  thread_.wake();
}

void Exchange::post(Event event) {
  news_.post(std::move(event));
  rung_ = true;
}

void Exchange::run(const std::stop_token& stop) {
  epoll_event events[kEventsMax];
  for (;;) {
    const bool soon = again_ || std::ranges::any_of(wanted_, [](const auto& entry) {
                        return entry.second.next != Clock::time_point::max();
                      });
    const int count = epoll_wait(epoll_.get(), events, kEventsMax, thread_.wait_ms(soon));
    if (count < 0 && errno != EINTR) {
      hear_nothing(base::failed("epoll_wait"));
    }
    for (int i = 0; i < count; ++i) {
      on_event(events[i].data.fd);
    }
    if (stop.stop_requested()) {
      return;
    }
    call_wanted();
    if (std::exchange(rung_, false) || (count == 0 && thread_.wait_ms(again_) >= 0)) {
      again_ = thread_.call();
    }
  }
}

/// The thread can receive no more events: refuses every order.
void Exchange::hear_nothing(const base::Trouble& trouble) {
  troubles_.note(trouble);
  take_orders();
  for (auto& [id, wanted] : wanted_) {
    give_up(id, trouble.rc);
  }
  wanted_.clear();
  std::this_thread::sleep_for(kTryAgain);
}

base::Trouble Exchange::watch(int fd, Fdkind kind, const LinkPtr& link) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return base::failed("epoll_ctl");
  }
  watched_[fd] = {kind, link};
  return {};
}

void Exchange::forget(int fd) {
  if (fd >= 0 && watched_.erase(fd) != 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
}

// An event before this one may have closed the descriptor, and its number may be in use again.
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
    base::clear_wake_fd(fd);
    rung_ = true;
  } else if (base::is_readable(watched.link->process)) {
    down(watched.link);
  }
}

void Exchange::take_orders() {
  rung_ = thread_.take_order() || rung_;
  Order order;
  while (orders_.take(&order)) {
    if (order.cut != nullptr) {
      down(order.cut);
    } else {
      wanted_.try_emplace(order.want);
    }
  }
}

void Exchange::call_wanted() {
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    auto& [id, wanted] = *it;
    const auto link = std::find_if(links_.begin(), links_.end(), [id = id](const LinkPtr& l) {
      return id - l->they.first_id < l->they.ids || (l->ours && l->wanted == id);
    });
    bool over = false;
    if (link != links_.end()) {
      over = (*link)->state == Link::kUp;
      wanted.next = Clock::time_point::max();  // until the link has an event
    } else if (wanted.next <= Clock::now()) {
      bool absent = false;
      if (!is_final(wanted.trouble)) {
        call(id, wanted, &absent);
      }
      over = absent || wanted.tries > kTriesMax || is_final(wanted.trouble);
      if (over) {
        give_up(id, wanted.trouble);
      }
    }
    it = over ? wanted_.erase(it) : std::next(it);
  }
}

void Exchange::call(uint32_t id, Wanted& wanted, bool* absent) {
  ++wanted.tries;
  wanted.next = Clock::now() + kTryAgain;
  auto link = std::make_shared<Link>();
  base::Trouble trouble;
  const Directory::Called called = directory_->connect(id, &link->socket, &trouble);
  if (called == Directory::Called::kBusy) {
    --wanted.tries;
    return;
  }
  link->state = Link::kCalled;
  link->ours = true;
  link->wanted = id;
  base::Fd memory;
  *absent = called == Directory::Called::kNoMember ||
            (called == Directory::Called::kConnected && !know(*link, &trouble) && !trouble);
  if (*absent) {
    wanted.trouble = 0;
    return;
  }
  trouble = trouble ? trouble : link->joint.make(&memory);
  link->offer.choose(areas_.get());
  const bool said = !trouble && say(*link, Say::kCall, &memory, &trouble);
  trouble = !said || trouble ? trouble : watch_link(link);
  if (trouble) {
    wanted.trouble = trouble.rc;
    troubles_.note(trouble);
  } else if (said) {
    links_.push_back(link);
    wanted.next = Clock::time_point::max();  // until the link has an event
  }
}

/// Ends the search for a destID until it is wanted again. @param trouble of this process; 0: no
/// process has the destID.
void Exchange::give_up(uint32_t id, int trouble) {
  // Senders read EAGAIN as "not yet".
  troubles_.set_unreachable(id, 1, trouble == -EAGAIN ? -ENOMEM : trouble);
  post({Event::kNoMember, id, nullptr});
}

/// Records a failure on a link, also for a sender that waits for the link.
void Exchange::note(const base::Trouble& trouble, const Link& link) {
  troubles_.note(trouble);
  const auto it = wanted_.find(link.wanted);
  if (link.ours && it != wanted_.end()) {
    it->second.trouble = trouble.rc;
  }
}

/// Identifies the process at the other end of a link's socket. A later message on the socket proves
/// that the pidfd is that process's: a dead one sends nothing, even if its number is reused.
/// @return false: no living process of this user is there, or `trouble` kept us from finding out.
bool Exchange::know(Link& link, base::Trouble* trouble) {
  ucred peer{};
  if (!base::peer_of(link.socket, &peer)) {
    *trouble = base::failed("getsockopt(SO_PEERCRED)");
    return false;
  }
  if (peer.uid != geteuid()) {
    return false;
  }
  link.pid = peer.pid;
  if (peer.pid <= 0) {
    return true;  // the peer is in another pid namespace: rely on its socket alone
  }
  const base::Trouble unwatched = base::watch_process(peer.pid, &link.process);
  if (base::is_shortage(unwatched.rc)) {
    *trouble = unwatched;
    return false;
  }
  if (unwatched && unwatched.rc != -ESRCH) {
    troubles_.tell("a partner's death goes unseen while a child forked by it lives: " +
                   base::why(unwatched));
  }
  return unwatched.rc != -ESRCH;
}

/// Whether the destIDs that a partner claims are its own: it must listen at their sockets.
/// @param trouble set if this process itself failed; then the answer is false.
bool Exchange::may_be(const Link& link, const Greeting& greeting, base::Trouble* trouble) const {
  const uint32_t first = greeting.first_id;
  if (first == 0 || greeting.ids == 0 || greeting.ids > kIdsMax ||
      first + greeting.ids - 1 < first ||
      ids_meet(first, greeting.ids, directory_->first_id(), directory_->ids()) ||
      (link.ours && link.wanted - first >= greeting.ids)) {
    return false;
  }
  for (uint32_t id = first; id - first < greeting.ids; ++id) {
    base::Fd socket;
    ucred peer{};
    if (link.ours && id == link.wanted) {
      continue;
    }
    if (directory_->connect(id, &socket, trouble) != Directory::Called::kConnected ||
        !base::peer_of(socket, &peer) || peer.pid != link.pid) {
      return false;
    }
  }
  return true;
}

/// Sends a greeting. @param memory of our half; null: no descriptors go with it. @return whether it
/// was sent; if not, and without `trouble`, the partner is leaving.
bool Exchange::say(Link& link, Say what, const base::Fd* memory, base::Trouble* trouble) const {
  Greeting greeting{.say = what,
                    .nonce = nonce_,
                    .first_id = directory_->first_id(),
                    .ids = directory_->ids(),
                    .nonce_at = reinterpret_cast<uintptr_t>(&nonce_)};
  std::vector<int> fds;
  if (memory != nullptr) {
    fds = {memory->get(), link.joint.bell.get()};
    greeting.windows = link.offer.tell(greeting.window, &fds);
  }
  const auto bytes = std::as_bytes(std::span(&greeting, 1));
  int rc = base::send_with_fds(link.socket, bytes, fds);
  if (rc == -ETOOMANYREFS && greeting.windows != 0) {  // the user has too many on their way
    greeting.windows = 0;
    rc = base::send_with_fds(link.socket, bytes, std::span(fds).first(kFdsOfJoint));
  }
  link.offer.close();
  if (rc != 0 && rc != -EPIPE && rc != -ECONNRESET && rc != -EAGAIN) {  // -EAGAIN: it is stopped
    *trouble = {"sendmsg", rc};
  }
  return rc == 0;
}

/// Watches a link's socket, and the process behind it.
base::Trouble Exchange::watch_link(const LinkPtr& link) {
  base::Trouble trouble = watch(link->socket.get(), Fdkind::kSocket, link);
  if (!trouble && link->process.valid()) {
    trouble = watch(link->process.get(), Fdkind::kProcess, link);
    if (trouble) {
      forget(link->socket.get());
    }
  }
  return trouble;
}

void Exchange::accept() {
  base::Fd socket;
  int rc = 0;
  while ((rc = base::accept_from(directory_->listener(), &socket)) == 0) {
    auto link = std::make_shared<Link>();
    link->socket = std::move(socket);
    base::Trouble trouble;
    if (know(*link, &trouble)) {
      trouble = watch_link(link);
    }
    if (trouble) {
      troubles_.note(trouble);
    } else if (watched_.count(link->socket.get()) != 0) {
      links_.push_back(link);
    }
  }
  if (rc != -EAGAIN && rc != -EINTR && rc != -ECONNABORTED) {
    troubles_.note({"accept4", rc});
    std::this_thread::sleep_for(kTryAgain);  // the caller waits
  }
}

void Exchange::on_message(const LinkPtr& link) {
  Greeting greeting;
  std::vector<base::Fd> fds;
  const ssize_t got =
      base::receive_with_fds(link->socket, std::as_writable_bytes(std::span(&greeting, 1)), &fds);
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  base::Trouble trouble;
  if (got < 0 && got != -ECONNRESET && got != -EMSGSIZE) {
    trouble = {"recvmsg", static_cast<int>(got)};
  }
  const bool stays = got == sizeof greeting && on_greeting(link, greeting, fds, &trouble);
  if (trouble) {
    note(trouble, *link);
  }
  if (!stays) {
    down(link);
  }
}

/// Maps the memory that a partner offers, if this member shares memory. @param fds those of the
/// memory are removed. @return false: no member sends such a greeting.
bool Exchange::take_windows(Link& link, const Greeting& greeting, std::vector<base::Fd>& fds) {
  if (greeting.windows > model::Windows::kMost || fds.size() != kFdsOfJoint + greeting.windows) {
    return false;
  }
  const std::vector<base::Fd> memory = split_off(fds, kFdsOfJoint);
  bool sound = areas_ == nullptr;
  const base::Trouble trouble =
      sound ? base::Trouble{}
            : link.memory.map(std::span(greeting.window, greeting.windows), memory, &sound);
  if (trouble) {
    troubles_.tell("messages of a partner are copied once more: " + base::why(trouble));
  }
  return sound;
}

// Returns false if the link ends.
bool Exchange::on_greeting(const LinkPtr& link, const Greeting& greeting,
                           std::vector<base::Fd>& fds, base::Trouble* trouble) {
  if (greeting.magic != kMagic || greeting.version != kVersion) {
    return false;
  }
  if (link->state == Link::kAnswered) {
    if (greeting.say != Say::kReady || greeting.nonce != link->they.nonce) {
      return false;
    }
    return up(link, trouble);
  }
  const Say expected = link->state == Link::kAccepted ? Say::kCall : Say::kAnswer;
  if ((link->state != Link::kAccepted && link->state != Link::kCalled) ||
      greeting.say != expected || !may_be(*link, greeting, trouble) ||
      !settle_others(link, greeting)) {
    return false;
  }
  if (!take_windows(*link, greeting, fds)) {
    return false;
  }
  bool sound = false;
  *trouble = link->joint.take(fds, &sound);
  if (!sound) {
    return false;
  }
  link->they = greeting;
  if (link->state == Link::kCalled) {
    return say(*link, Say::kReady, nullptr, trouble) && up(link, trouble);
  }
  base::Fd memory;
  *trouble = link->joint.make(&memory);
  link->offer.choose(areas_.get());
  if (*trouble || !say(*link, Say::kAnswer, &memory, trouble)) {
    return false;
  }
  link->state = Link::kAnswered;
  return true;
}

// Ends other links to the same destIDs. Two members may call each other at once, and a new owner of
// a destID may call before its predecessor's death is noticed. @return false: this link is the
// superfluous one.
bool Exchange::settle_others(const LinkPtr& link, const Greeting& greeting) {
  const std::vector<LinkPtr> all = links_;
  for (const LinkPtr& other : all) {
    if (other == link) {
      continue;
    }
    const Greeting& they = other->they;
    const bool same =
        they.ids != 0 && ids_meet(they.first_id, they.ids, greeting.first_id, greeting.ids);
    if (same && they.nonce == greeting.nonce) {
      return false;  // connected already
    }
    if (same) {
      down(other);  // an earlier process with this destID
    } else if (!link->ours && other->state == Link::kCalled &&
               other->wanted - greeting.first_id < greeting.ids) {
      if (directory_->first_id() < greeting.first_id) {
        return false;  // the lower destID's call counts
      }
      down(other);
    }
  }
  return true;
}

// The next check finds a process that has died meanwhile. @return false: the link ends.
bool Exchange::up(const LinkPtr& link, base::Trouble* trouble) {
  *trouble = watch(link->joint.bell.get(), Fdkind::kBell, link);
  if (*trouble) {
    return false;
  }
  link->state = Link::kUp;
  troubles_.set_unreachable(link->they.first_id, link->they.ids, 0);
  post({Event::kCame, link->they.first_id, link});
  return true;
}

void Exchange::down(const LinkPtr& link) {
  if (link->state == Link::kDown) {
    return;
  }
  const bool was_up = link->state == Link::kUp;
  link->state = Link::kDown;
  forget(link->socket.get());
  forget(link->process.get());
  forget(link->joint.bell.get());
  shutdown(link->socket.get(), SHUT_RDWR);  // a forked child may have it, too
  link->socket.reset();
  std::erase(links_, link);
  for (auto& [id, wanted] : wanted_) {
    if (wanted.next == Clock::time_point::max()) {
      wanted.next = Clock::now() + kTryAgain;
    }
  }
  if (was_up) {
    post({Event::kGone, link->they.first_id, link});
  }
}

}  // namespace rio::wire::shm
