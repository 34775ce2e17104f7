#include "fpga/wire/relay/host.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/formatted.hpp"
#include "base/peer_process.hpp"
#include "base/trouble.hpp"
#include "base/unix_socket.hpp"
#include "base/wake_fd.hpp"
#include "fpga/wire/free_ids.hpp"
#include "fpga/wire/half.hpp"

namespace rio::wire::relay {
namespace {

constexpr int kEventsMax = 64;
/// Sweeps in vain before the host sleeps: few, and without yielding. A sleeping thread that is rung
/// runs at once; one that yields to a polling program waits for the end of its time slice. The
/// control channel is checked after so many sweeps.
constexpr uint32_t kIdleSweeps = 8;
constexpr uint32_t kSweepsPerLook = 64;
constexpr int kRetryMs = 1;

/// The low half of an event's number is a process; the high half is the source:
enum Source : uint64_t { kListener = 0, kUntil = 1, kSocket = 2, kDeath = 3, kBell = 4 };
[[nodiscard]] uint64_t event_of(Source source, uint32_t process) {
  return uint64_t{source} << 32 | process;
}

[[nodiscard]] int watch(const base::Fd& epoll, const base::Fd& fd, uint64_t number) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = number;
  return epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0 ? 0 : -errno;
}

void set_text(Control* what, const std::string& text) {
  std::snprintf(what->text, sizeof what->text, "%s", text.c_str());
}

}  // namespace

/// A process, from its call on.
struct Host::Guest {
  uint32_t process = 0;
  Control seat{};  // ids of 0: it has not joined yet
  int pid = 0;
  base::Fd socket;
  base::Fd death;  // pidfd; empty if the kernel gives none
  Joint joint;
  std::optional<Rings> rings;  // once it has joined
  std::deque<Control> unsaid;
};

Host::Host(const HostConfig& config, Tell tell) : config_(config), tell_(tell), owner_(getpid()) {}

int Host::create(const HostConfig& config, Tell tell, std::unique_ptr<Host>* out,
                 std::string* error) {
  if (const std::string slow = let_others_see_us(); !slow.empty()) {
    tell(true, slow);
  }
  std::unique_ptr<Host> made(new Host(config, tell));
  if (const int rc = listen_as(config.name, &made->listener_, error); rc != 0) {
    return rc;
  }
  made->epoll_ = base::Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!made->epoll_.valid() || watch(made->epoll_, made->listener_, event_of(kListener, 0)) != 0) {
    return base::fail(error, -errno, "cannot listen");
  }
  *out = std::move(made);
  return 0;
}

Host::~Host() {
  if (owner_ == getpid() && listener_.valid()) {
    stop_listening(config_.name);
  }
}

Host::Guest* Host::guest_of(uint32_t process) {
  const auto it = guests_.find(process);
  return it == guests_.end() ? nullptr : it->second.get();
}

void Host::run(const base::Fd& until) {
  if (watch(epoll_, until, event_of(kUntil, 0)) != 0) {
    return;
  }
  bool ends = false;
  for (uint32_t idle = 0, sweeps = 0; !ends;) {
    const bool moved = traffic_.sweep();
    tell_what_happened();
    idle = moved ? 0 : idle + 1;
    if (idle > kIdleSweeps) {
      set_asleep(true);
      ends = traffic_.sweep() ? false : listen_to(waiting_ ? kRetryMs : -1);
      set_asleep(false);
      idle = 0;
    } else if (++sweeps % kSweepsPerLook == 0) {
      ends = listen_to(0);
    }
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, until.get(), nullptr);
}

void Host::set_asleep(bool asleep) {
  for (const auto& [process, guest] : guests_) {
    if (guest->seat.ids != 0) {
      guest->joint.mine.set_asleep(asleep);
    }
  }
  if (asleep) {
    make_stores_seen();  // a process sees the flag, or we see its packets
  }
}

// Returns true to end.
bool Host::listen_to(int timeout_ms) {
  epoll_event events[kEventsMax];
  const int count = epoll_wait(epoll_.get(), events, kEventsMax, timeout_ms);
  bool ends = false;
  for (int i = 0; i < count; ++i) {
    const auto process = static_cast<uint32_t>(events[i].data.u64);
    const uint64_t source = events[i].data.u64 >> 32;
    Guest* const guest = guest_of(process);
    if (source == kUntil) {
      ends = true;
    } else if (source == kListener) {
      accept();
    } else if (guest == nullptr) {
      continue;  // removed by an event before this one
    } else if (source == kBell) {
      base::clear_wake_fd(guest->joint.bell.get());
    } else if (source == kDeath) {
      leave(process, true);
    } else {
      on_message(*guest);
    }
  }
  if (waiting_) {
    waiting_ = false;
    for (const auto& [process, guest] : guests_) {
      send_waiting(*guest);
    }
  }
  return ends;
}

void Host::accept() {
  base::Fd socket;
  int rc = 0;
  while ((rc = base::accept_from(listener_, &socket)) == 0) {
    auto guest = std::make_unique<Guest>();
    guest->socket = std::move(socket);
    guest->process = ++last_process_;
    ucred peer{};
    if (!base::peer_of(guest->socket, &peer) || peer.uid != geteuid() ||
        watch(epoll_, guest->socket, event_of(kSocket, guest->process)) != 0) {
      continue;
    }
    guest->pid = peer.pid;
    const base::Trouble trouble = base::watch_process(peer.pid, &guest->death);
    if (trouble && !told_pidfd_) {
      told_pidfd_ = true;
      tell_(true, "a process's death goes unseen while a child forked by it lives: " +
                      base::why(trouble));
    }
    if (guest->death.valid()) {
      static_cast<void>(watch(epoll_, guest->death, event_of(kDeath, guest->process)));
    }
    guests_[guest->process] = std::move(guest);
  }
  if (rc != -EAGAIN && rc != -EINTR && rc != -ECONNABORTED) {
    tell_(true, "no descriptor for one more process: " + base::why({"accept4", rc}));
    std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMs));
  }
}

void Host::on_message(Guest& guest) {
  Control said;
  std::vector<base::Fd> fds;
  const ssize_t got =
      base::receive_with_fds(guest.socket, std::as_writable_bytes(std::span(&said, 1)), &fds);
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  const bool whole =
      got == static_cast<ssize_t>(sizeof said) && said.magic == kMagic && said.version == kVersion;
  const bool joined = guest.seat.ids != 0;
  if (whole && said.say == Say::kJoin && !joined) {
    on_join(guest, said, fds);
  } else if (whole && said.say == Say::kWant && joined) {
    on_want(guest, said.first_id);
  } else {
    const bool honest = got == 0 || got == -ECONNRESET;
    if (!honest) {
      tell_(true, "process " + std::to_string(guest.process) + " (pid " +
                      std::to_string(guest.pid) +
                      ") sends a message that makes no sense: it is cut off");
      ++cut_off_;
    }
    leave(guest.process, honest);
  }
}

uint32_t Host::on_board(uint32_t board) const {
  return static_cast<uint32_t>(std::count_if(guests_.begin(), guests_.end(), [&](const auto& each) {
    return each.second->seat.ids != 0 && each.second->seat.board == board;
  }));
}

int Host::choose_seat(Control* seat, std::string* why) const {
  if (seat->ids == 0 || seat->ids > kIdsMax || seat->first_id > kLastId) {
    return base::fail(why, "a card cannot have so many destIDs");
  }
  if (seat->board == kAnyBoard) {
    seat->board = 0;
    for (uint32_t board = 1; board < config_.boards; ++board) {
      seat->board = on_board(board) < on_board(seat->board) ? board : seat->board;
    }
  }
  if (seat->board >= config_.boards) {
    return base::fail(why, "no board %u; there are boards 0 to %u", seat->board,
                      config_.boards - 1);
  }
  if (on_board(seat->board) >= config_.processes) {
    *why = "board " + std::to_string(seat->board) + " is full; start it with more --processes";
    return -EBUSY;
  }
  std::set<uint32_t> taken;
  for (const auto& [process, guest] : guests_) {
    for (uint32_t i = 0; i < guest->seat.ids; ++i) {
      taken.insert(guest->seat.first_id + i);
    }
  }
  const uint32_t first = seat->first_id == 0 ? lowest_free(taken, seat->ids) : seat->first_id;
  if (!all_free(taken, first, seat->ids)) {
    *why = "destID " + std::to_string(*taken.lower_bound(first)) +
           " is in use; give another id=, or none";
    return -EBUSY;
  }
  if (seat->ids - 1 > kLastId - first) {
    return base::fail(why, "not enough destIDs from there on; give a lower id=, or none");
  }
  seat->first_id = first;
  return 0;
}

int Host::open_rings(Guest& guest, std::vector<base::Fd>& fds, base::Fd* memory) {
  bool sound = false;
  base::Trouble trouble = guest.joint.take(fds, &sound);
  if (!trouble && !sound) {
    return -EPROTO;
  }
  trouble = trouble ? trouble : guest.joint.make(memory);
  if (trouble) {
    tell_(true, "no connection to one more process: " + base::why(trouble));
    return trouble.rc;
  }
  guest.rings.emplace(guest.joint);
  return watch(epoll_, guest.joint.bell, event_of(kBell, guest.process));
}

void Host::refuse(Guest& guest, int error, const std::string& why) {
  Control refused{.say = Say::kRefused, .error = error};
  set_text(&refused, why);
  static_cast<void>(base::send_with_fds(guest.socket, std::as_bytes(std::span(&refused, 1)), {}));
  tell_(true, "pid " + std::to_string(guest.pid) + " is refused: " + why);
  guests_.erase(guest.process);
}

void Host::on_join(Guest& guest, const Control& join, std::vector<base::Fd>& fds) {
  Control seat{.say = Say::kWelcome,
               .process = guest.process,
               .board = join.board,
               .first_id = join.first_id,
               .ids = join.ids};
  std::string why;
  if (const int rc = choose_seat(&seat, &why); rc != 0) {
    refuse(guest, rc, why);
    return;
  }
  base::Fd memory;
  int rc = open_rings(guest, fds, &memory);
  const int given[] = {memory.get(), guest.joint.bell.get()};
  rc = rc == 0 ? base::send_with_fds(guest.socket, std::as_bytes(std::span(&seat, 1)), given) : rc;
  if (rc != 0) {
    refuse(guest, rc, std::string("no pool of buffers for it: ") + std::strerror(-rc));
    return;
  }
  guest.seat = seat;
  Rings& rings = *guest.rings;
  traffic_.add(
      guest.process, seat.first_id, seat.ids,
      {{&rings.in_requests, &rings.in_responses}, {&rings.out_requests, &rings.out_responses}});
  ++joined_;
  tell_(false, "process " + std::to_string(guest.process) + " (pid " + std::to_string(guest.pid) +
                   ") is on board " + std::to_string(seat.board) + ", destID " +
                   std::to_string(seat.first_id));
}

// Tells both processes of each other: a process that receives something has to answer.
void Host::on_want(Guest& guest, uint32_t id) {
  const auto introduce = [this](Control who, Guest& to) {
    who.say = Say::kCame;
    say(to, who);
  };
  for (const auto& [process, other] : guests_) {
    if (id - other->seat.first_id < other->seat.ids) {
      introduce(other->seat, guest);
      introduce(guest.seat, *other);
      return;
    }
  }
  say(guest, {.say = Say::kNoProcess, .first_id = id});
}

void Host::say(Guest& guest, const Control& what) {
  guest.unsaid.push_back(what);
  send_waiting(guest);
}

// Sends messages in order; the rest later if the process does not listen now.
void Host::send_waiting(Guest& guest) {
  while (!guest.unsaid.empty()) {
    const auto bytes = std::as_bytes(std::span(&guest.unsaid.front(), 1));
    if (base::is_shortage(base::send_with_fds(guest.socket, bytes, {}))) {
      waiting_ = true;
      return;
    }
    guest.unsaid.pop_front();  // if it is gone, its socket shows that
  }
}

void Host::tell_what_happened() {
  for (const auto& [process, what] : traffic_.take_fouls()) {
    if (Guest* const guest = guest_of(process); guest != nullptr) {
      ++cut_off_;
      tell_(true, "process " + std::to_string(process) + " (pid " + std::to_string(guest->pid) +
                      ", destID " + std::to_string(guest->seat.first_id) + ") " + what +
                      ": it is cut off");
      Control cut{.say = Say::kCut};
      set_text(&cut, "the relay has cut this process off, since it " + what);
      say(*guest, cut);
      leave(process, false);
    }
  }
  for (const auto& [process, to] : traffic_.take_departures()) {
    if (Guest* const guest = guest_of(to); guest != nullptr) {
      say(*guest, {.say = Say::kGone, .process = process});
    }
  }
}

void Host::leave(uint32_t process, bool honest) {
  Guest* const guest = guest_of(process);
  if (guest == nullptr) {
    return;
  }
  traffic_.remove(process, honest);
  if (guest->seat.ids != 0) {
    tell_(false, "process " + std::to_string(process) + " (pid " + std::to_string(guest->pid) +
                     ") has left board " + std::to_string(guest->seat.board));
  }
  guests_.erase(process);
}

std::string Host::status() const {
  using Json = nlohmann::ordered_json;
  Json boards(config_.boards, Json::array());
  for (const auto& [process, guest] : guests_) {
    if (guest->seat.ids == 0) {
      continue;
    }
    const Counts& counts = traffic_.counts(process);
    boards[guest->seat.board].push_back({{"process", process},
                                         {"pid", guest->pid},
                                         {"destid", guest->seat.first_id},
                                         {"frames_up", counts.frames_up},
                                         {"bytes_up", counts.bytes_up},
                                         {"frames_down", counts.frames_down},
                                         {"queued_bytes", counts.queued_bytes},
                                         {"queued_most", counts.queued_most}});
  }
  const Json status = {{"relay", config_.name},
                       {"joined", joined_},
                       {"cut_off", cut_off_},
                       {"boards", std::move(boards)}};
  return status.dump();
}

}  // namespace rio::wire::relay
