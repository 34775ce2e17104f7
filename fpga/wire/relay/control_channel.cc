#include "fpga/wire/relay/control_channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "base/no_cancel.hpp"
#include "base/trouble.hpp"
#include "base/unix_socket.hpp"
#include "base/wake_fd.hpp"

namespace rio::wire::relay {
namespace {

constexpr int kAnswerMs = 10'000;
constexpr auto kConnectWait = std::chrono::milliseconds(1);
constexpr int kConnectTries = 10'000;

/// Reports a system call that failed in this process.
[[nodiscard]] int fail(std::string* error, const base::Trouble& trouble) {
  *error = "no connection to the relay: " + base::why(trouble);
  return trouble.rc;
}

/// The text in a message of the other side, which may lack its end.
[[nodiscard]] std::string text_of(const Control& said) {
  return {said.text, strnlen(said.text, sizeof said.text)};
}

[[nodiscard]] bool sane(const Control& said) {
  return said.magic == kMagic && said.version == kVersion;
}

}  // namespace

int ControlChannel::join(const Ticket& ticket, std::atomic<bool>* news, MemberThread* thread,
                         std::unique_ptr<ControlChannel>* out, std::string* error) {
  std::unique_ptr<ControlChannel> made(new ControlChannel(news, thread));
  int rc = -EAGAIN;
  for (int tries = 0; rc == -EAGAIN && tries < kConnectTries; ++tries) {
    rc = connect_to_relay(ticket.relay, &made->socket_, error);
    if (rc == -EAGAIN) {
      std::this_thread::sleep_for(kConnectWait);  // many processes may be connecting at once
    }
  }
  if (rc == -EAGAIN) {
    return base::fail(
        error, -ETIMEDOUT,
        "relay '" + ticket.relay + "' does not accept another process; is it stopped?");
  }
  if (rc != 0) {
    return rc;
  }
  if (rc = made->ask(ticket, error); rc != 0) {
    return rc;
  }
  rc = thread->start(
      "rio-relay", [self = made.get()](const std::stop_token& stop) { self->run(stop); }, error);
  if (rc != 0) {
    *error = "relay:" + ticket.relay + ": " + *error;
    return rc;
  }
  *out = std::move(made);
  return 0;
}

int ControlChannel::ask(const Ticket& ticket, std::string* error) {
  base::Fd memory;
  base::Trouble trouble = thread_.open();
  trouble = trouble ? trouble : joint_.make(&memory);
  if (trouble) {
    return fail(error, trouble);
  }
  const Control join{
      .say = Say::kJoin, .board = ticket.board, .first_id = ticket.id, .ids = ticket.ids};
  const int fds[] = {memory.get(), joint_.bell.get()};
  int rc = base::send_with_fds(socket_, std::as_bytes(std::span(&join, 1)), fds);
  if (rc != 0 && rc != -EPIPE && rc != -ECONNRESET) {
    return fail(error, {"sendmsg", rc});
  }
  std::vector<base::Fd> theirs;
  rc = rc == 0 ? hear_seat(&theirs, &trouble) : rc;
  if (trouble) {
    return fail(error, trouble);
  }
  if (rc != 0) {
    return base::fail(error, rc,
                      "relay '" + ticket.relay + "' does not answer; look at it, or start it");
  }
  if (seat_.say == Say::kRefused && seat_.error < 0) {
    *error = "relay '" + ticket.relay + "': " + text_of(seat_);
    return seat_.error;
  }
  if (seat_.say != Say::kWelcome || theirs.size() != 2 || seat_.process == 0 ||
      seat_.first_id == 0 || seat_.ids != ticket.ids || seat_.ids - 1 > kLastId - seat_.first_id) {
    return base::fail(error, -EPROTO,
                      "relay '" + ticket.relay + "' sends an answer that makes no sense");
  }
  bool sound = false;
  if (trouble = joint_.take(theirs, &sound); trouble) {
    return fail(error, trouble);
  }
  if (!sound) {
    return base::fail(error, -EPROTO,
                      "relay '" + ticket.relay + "' shows memory that is not sealed");
  }
  return 0;
}

/// Waits for the relay's answer. @return 0; -ETIMEDOUT, -EPROTO: the relay's fault; `trouble`: a
/// failure in this process.
int ControlChannel::hear_seat(std::vector<base::Fd>* fds, base::Trouble* trouble) {
  pollfd answer{socket_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&answer, 1, kAnswerMs)) < 0 && errno == EINTR) {
  }
  if (ready < 0) {
    *trouble = base::failed("poll");
    return trouble->rc;
  }
  if (ready == 0) {
    return -ETIMEDOUT;
  }
  const ssize_t got =
      base::receive_with_fds(socket_, std::as_writable_bytes(std::span(&seat_, 1)), fds);
  if (got < 0 && got != -ECONNRESET && got != -EMSGSIZE) {
    *trouble = {"recvmsg", static_cast<int>(got)};
  }
  return got == static_cast<ssize_t>(sizeof seat_) && sane(seat_) ? 0 : -EPROTO;
}

ControlChannel::~ControlChannel() {
  thread_.stop();
  if (thread_.of_this_process()) {
    shutdown(socket_.get(), SHUT_RDWR);  // a forked child may have it, too
  }
}

void ControlChannel::want(uint32_t id) {
  const base::NoCancel no_cancel;
  const Control want{.say = Say::kWant, .first_id = id};
  if (!thread_.of_this_process() ||  // forked since: the connection is the parent's
      base::send_with_fds(socket_, std::as_bytes(std::span(&want, 1)), {}) != 0) {
    // The relay does not listen now: a sender that needs the destID asks again.
    news_.post({.say = Say::kNoProcess, .first_id = id});
  }
}

void ControlChannel::run(const std::stop_token& stop) {
  bool again = false;
  bool listens = true;
  while (!stop.stop_requested()) {
    pollfd fds[] = {{thread_.order().get(), POLLIN, 0},
                    {joint_.bell.get(), POLLIN, 0},
                    {listens ? socket_.get() : -1, POLLIN, 0}};
    const int count = poll(fds, std::size(fds), thread_.wait_ms(again));
    bool rung = count == 0;
    if (fds[0].revents != 0) {
      rung = thread_.take_order() || rung;
    }
    if (fds[1].revents != 0) {
      base::clear_wake_fd(fds[1].fd);
      rung = true;
    }
    if (fds[2].revents != 0) {
      listens = hear();
      rung = true;
    }
    if (rung && !stop.stop_requested()) {
      again = thread_.call();
    }
  }
}

// Returns false if the relay has gone, or breaks the rules.
bool ControlChannel::hear() {
  Control said;
  std::vector<base::Fd> none;
  const ssize_t got =
      base::receive_with_fds(socket_, std::as_writable_bytes(std::span(&said, 1)), &none);
  if (got == -EAGAIN || got == -EINTR) {
    return true;
  }
  const bool whole = got == static_cast<ssize_t>(sizeof said) && sane(said);
  if (whole && (said.say == Say::kCame || said.say == Say::kNoProcess || said.say == Say::kGone)) {
    news_.post(said);
    return true;
  }
  Control end{.say = Say::kCut};
  if (whole && said.say == Say::kCut) {
    std::snprintf(end.text, sizeof end.text, "%s", text_of(said).c_str());
  }
  news_.post(end);
  return false;
}

}  // namespace rio::wire::relay
