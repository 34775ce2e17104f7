#include "lib/skifch/skifch.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/no_cancel.hpp"
#include "lib/msg/address.hpp"
#include "lib/msg/caller_state.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/waiting.hpp"

using rio::msg::context_of;
using rio::msg::dest_id_of;
using rio::msg::Guard;
using rio::msg::Inbox;
using rio::msg::Kind;
using rio::msg::MessageContext;
using rio::msg::MessagePort;
using rio::msg::Route;
using rio::msg::Threads;

static_assert(SKIFCH_MESSAGE_MAX == rio::msg::kPartBytesMax);
static_assert(SKIFCH_CHANNELS == rio::msg::kContexts);

/// An account without credit, so that a send to it takes the slow path.
static rio::msg::Outflow full;

struct SkifCh {
  std::shared_ptr<MessagePort> port;
  std::unique_ptr<MessageContext> context;
  // The inbox that Recv and RecvComp read without a lock: with threads, one that is always empty.
  // Numbers of the inbox: the message that Recv gives next, and the one that RecvComp takes back
  // next. Messages that were taken back are dropped by runs.
  uint32_t give = 0;
  uint32_t done = 0;
  const Inbox* inbox = nullptr;
  MessagePort* port_now = nullptr;  // `port`
  uint32_t given_locked = 0;  // with threads: how many Recv gave and RecvComp did not take back
  // The destination to which a short message goes at once: the last one; at first, when a session
  // has ended, and with threads, one to which nothing can be sent.
  netaddr_t near_dst = SKIFCH_CHANNELS;
  rio::msg::LastRoute last{.route = {.out = &full}};
  bool threads = false;
  rio::msg::Retry retry;
  uint64_t ended = 0;       // MessagePort::sessions_ended() that SkifCh_Wait has told
  rio::msg::PeerNews news;  // that SkifCh_NextGone has told
};

namespace {

int fail(int error) {
  errno = -error;
  return -1;
}

using Ports = std::map<std::string, std::weak_ptr<MessagePort>>;

/// Ports of this thread, so that channels share a card.
Ports& own_ports() {
  static thread_local Ports all;
  return all;
}

/// All ports of the process, for channels that may share one between threads.
struct SharedPorts {
  std::mutex mutex;  // held also while a port is closed
  Ports all;
};
SharedPorts& shared_ports() {
  static SharedPorts ports;
  return ports;
}

/// The name under which channels share a card.
std::string port_name(const char* card, const SkifCh_Options& options) {
  std::string name = card;
  name += "/" + std::to_string(options.queue_pair);
  name += "/" + std::to_string(options.dest_id);
  return name;
}

/// Whether a later channel asks for what the card was opened with. @return 0, -EINVAL.
int check_options(const char* card, const SkifCh_Options& asked, const rio::msg::PortConfig& has) {
  const struct {
    const char* name;
    uint32_t asked;
    uint32_t has;
  } all[] = {{"buffers", asked.buffers, has.buffers},
             {"share", asked.share, has.share},
             {"connect_ms", asked.connect_ms, has.connect_ms},
             {"sleeps", asked.sleeps != 0 ? 1u : 0u, has.sleeps ? 1u : 0u}};
  for (const auto& option : all) {
    if (option.asked != 0 && option.asked != option.has) {
      rio::base::log_error(
          "SkifCh_Open: %s was opened with %s %u by another channel, and this one wants %u; leave "
          "it 0, or give the first channel the same",
          card, option.name, option.has, option.asked);
      return -EINVAL;
    }
  }
  return 0;
}

/// @param others where the channel would not find the card. @return 0; -EINVAL: it is there.
int check_threads(const Ports& others, const char* card, const SkifCh_Options& options) {
  const auto found = others.find(port_name(card, options));
  if (found == others.end() || found->second.expired()) {
    return 0;
  }
  rio::base::log_error(
      "SkifCh_Open: %s was opened with threads %u by another channel, and this one wants %u; give "
      "both the same",
      card, options.threads != 0 ? 0u : 1u, options.threads);
  return -EINVAL;
}

int open_port(Ports& ports, const char* card, const SkifCh_Options& options,
              std::shared_ptr<MessagePort>* out) {
  const std::string name = port_name(card, options);
  if (std::shared_ptr<MessagePort> open = ports[name].lock(); open != nullptr) {
    const int rc = check_options(card, options, open->config());
    if (rc == 0) {
      *out = std::move(open);
    }
    return rc;
  }
  rio::msg::PortConfig config;
  config.card = card;
  config.queue_pair = options.queue_pair;
  config.dest_id = options.dest_id;
  config.buffers = options.buffers != 0 ? options.buffers : config.buffers;
  config.share = options.share != 0 ? options.share : config.share;
  config.connect_ms = options.connect_ms != 0 ? options.connect_ms : config.connect_ms;
  config.threads = options.threads != 0 ? Threads::kPerContext : Threads::kOne;
  config.sleeps = options.sleeps != 0;
  std::unique_ptr<MessagePort> port;
  if (const int rc = MessagePort::open(config, &port); rc != 0) {
    return rc;
  }
  *out = std::move(port);
  ports[name] = *out;
  return 0;
}

int open_port(const char* card, const SkifCh_Options& options, std::shared_ptr<MessagePort>* out) {
  SharedPorts& shared = shared_ports();
  std::unique_lock lock(shared.mutex);
  if (options.threads != 0) {
    const int rc = check_threads(own_ports(), card, options);
    return rc != 0 ? rc : open_port(shared.all, card, options, out);
  }
  const int rc = check_threads(shared.all, card, options);
  lock.unlock();
  return rc != 0 ? rc : open_port(own_ports(), card, options, out);
}

/// The inbox that Recv looks into with threads.
const Inbox* always_empty() {
  static const Inbox kNone(1);
  return &kNone;
}

/// The first bytes of the pieces that go into one message. @return how many, or -EINVAL.
[[gnu::noinline]] int64_t cut(const iovec* iov, int count, iovec* first, int* first_count) {
  if (count < 0 || count > SKIFCH_PIECES_MAX || (count > 0 && iov == nullptr)) {
    return -EINVAL;
  }
  size_t left = SKIFCH_MESSAGE_MAX;
  int n = 0;
  for (; n < count && left > 0; ++n) {
    first[n] = {iov[n].iov_base, std::min(iov[n].iov_len, left)};
    left -= first[n].iov_len;
  }
  *first_count = n;
  return SKIFCH_MESSAGE_MAX - static_cast<int64_t>(left);
}

/// @return 0, -EINVAL, -ENOMEM.
[[gnu::noinline]] int find_route(SkifCh& channel, netaddr_t dst) {
  if (context_of(dst) >= SKIFCH_CHANNELS) {
    return -EINVAL;
  }
  Route route;
  const int rc = channel.port->route(dest_id_of(dst), context_of(dst), channel.context->id(),
                                     Kind::kData, &route);
  if (rc == 0) {
    channel.last = {dst, route};
    channel.near_dst = SKIFCH_CHANNELS;  // until something was sent there
  }
  return rc;
}

[[gnu::noinline]] ssize_t send_any(SkifCh& channel, netaddr_t dst, const iovec* iov, int count) {
  const Guard guard(*channel.port_now);
  int rc = channel.last.address == dst ? 0 : find_route(channel, dst);
  if (rc != 0) {
    return fail(rc);
  }
  if (count == 1 && iov->iov_len <= SKIFCH_MESSAGE_MAX) {
    const size_t bytes = iov->iov_len;
    rc = channel.retry.send(*channel.port, [&] {
      return channel.port->send(channel.last.route, iov->iov_base, static_cast<uint32_t>(bytes));
    });
    if (rc != 0) {
      return fail(rc);
    }
    channel.near_dst = channel.threads ? SKIFCH_CHANNELS : dst;
    return static_cast<ssize_t>(bytes);
  }
  iovec first[SKIFCH_PIECES_MAX];
  const int64_t bytes = cut(iov, count, first, &count);
  if (bytes < 0) {
    return fail(static_cast<int>(bytes));
  }
  rc = channel.retry.send(*channel.port, [&] {
    return channel.port->send(channel.last.route, first, count, static_cast<uint32_t>(bytes));
  });
  return rc == 0 ? bytes : fail(rc);
}

/// send_any() of one piece to near_dst: the hot path keeps no registers for what is known.
[[gnu::noinline]] ssize_t send_near(SkifCh* channel, const iovec* iov) {
  return send_any(*channel, channel->near_dst, iov, 1);
}

/// Give messages that RecvComp took back to their sender. @return 0.
[[gnu::noinline]] int drop_done(SkifCh& channel) {
  while (channel.inbox->head() != channel.done) {
    const uint32_t n = std::min(channel.done - channel.inbox->head(), channel.inbox->run());
    channel.context->drop_oldest(n);
  }
  return 0;
}

/// All of a run was taken back. One that came alone may be what the user answers next: it goes back
/// behind that, with the next look for messages, or the next one that is taken back. @return 0.
[[gnu::noinline]] int end_of_run(SkifCh& channel) {
  const bool alone = channel.done - channel.inbox->head() == 1;
  return alone ? 0 : drop_done(channel);
}

ssize_t show(const iovec& next, iovec* cont, int* cont_count) {
  cont[0] = next;
  *cont_count = 1;
  return static_cast<ssize_t>(next.iov_len);
}

/// The next message of a channel with threads. @return null: there is none.
const iovec* next_locked(SkifCh& channel) {
  const Inbox& inbox = channel.context->inbox();
  return inbox.count() != channel.given_locked ? &inbox.at(channel.given_locked++) : nullptr;
}
/// The next message of a channel without a lock.
const iovec* next_message(SkifCh& channel) {
  const Inbox& inbox = *channel.inbox;
  return inbox.tail_number() != channel.give ? &inbox.numbered(channel.give++) : nullptr;
}

/// Slow path of a receive: the inbox is empty, or the port has a lock.
[[gnu::noinline]] ssize_t recv_later(SkifCh& channel, iovec* cont, int* cont_count) {
  const Guard guard(*channel.port_now);
  const iovec* next = channel.threads ? next_locked(channel) : nullptr;
  if (next == nullptr) {
    drop_done(channel);
    channel.port->progress();
    next = channel.threads ? next_locked(channel) : next_message(channel);
  }
  if (next == nullptr) {
    return fail(channel.port->error() != 0 ? channel.port->error() : -EAGAIN);
  }
  return show(*next, cont, cont_count);
}

/// Slow path of a completion: no message was given to the caller, or the port has a lock.
[[gnu::noinline]] int complete_later(SkifCh& channel) {
  const Guard guard(*channel.port_now);
  if (channel.given_locked == 0) {
    return fail(-EINVAL);
  }
  --channel.given_locked;
  channel.context->drop_oldest();
  return 0;
}

/// Wait until all sends have arrived.
void flush(MessagePort& port, uint32_t timeout_ms) {
  const uint64_t end = rio::base::now_ns() + uint64_t{timeout_ms} * 1'000'000;
  int rc = -ETIMEDOUT;
  while (rc == -ETIMEDOUT && rio::base::now_ns() < end) {
    const Guard guard(port);
    rc = port.flush(1);
  }
}

}  // namespace

SkifCh* SkifCh_Open(const char* card, uint32_t number, const SkifCh_Options* options) try {
  const rio::base::NoCancel no_cancel;
  if (card == nullptr || number >= SKIFCH_CHANNELS) {
    if (card == nullptr) {
      rio::base::log_error("SkifCh_Open: the card's name is NULL; give one, as \"shm:job\"");
    } else {
      rio::base::log_error("SkifCh_Open: channel %u on %s: numbers are 0 to %d", number, card,
                           SKIFCH_CHANNELS - 1);
    }
    errno = EINVAL;
    return nullptr;
  }
  const SkifCh_Options chosen = options != nullptr ? *options : SkifCh_Options{};
  auto channel = std::make_unique<SkifCh>();
  int rc = open_port(card, chosen, &channel->port);
  if (rc == 0) {
    const Guard guard(*channel->port);
    rc = MessageContext::create(*channel->port, static_cast<uint16_t>(number), &channel->context);
    channel->ended = channel->port->sessions_ended();
    channel->retry = rio::msg::Retry(channel->port->config().sleeps);
    channel->news.forget(*channel->port);
  }
  if (rc != 0) {
    errno = -rc;
    return nullptr;
  }
  channel->port_now = channel->port.get();
  channel->threads = chosen.threads != 0;
  channel->inbox = channel->threads ? always_empty() : &channel->context->inbox();
  channel->context->on_session_end([self = channel.get()] { self->near_dst = SKIFCH_CHANNELS; });
  return channel.release();
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void SkifCh_Close(SkifCh* channel) {
  if (channel == nullptr) {
    return;
  }
  const rio::base::NoCancel no_cancel;
  constexpr uint32_t kFlushMs = 1000;
  flush(*channel->port, kFlushMs);
  const bool threads = channel->threads;
  std::shared_ptr<MessagePort> port = channel->port;
  {
    const Guard guard(*port);
    delete channel;
  }
  // A caller that opens it again comes after the end.
  std::unique_lock<std::mutex> lock;
  if (threads) {
    lock = std::unique_lock(shared_ports().mutex);
  }
  port.reset();
}

netaddr_t SkifCh_Self(const SkifCh* channel) {
  return SkifCh_Addr(channel->port->dest_id(), channel->context->id());
}

netaddr_t SkifCh_Source(const SkifCh* channel) {
  const Guard guard(*channel->port_now);
  const uint32_t given =
      channel->threads ? channel->given_locked : channel->give - channel->inbox->head();
  const rio::msg::Origin origin = channel->context->inbox().origin(given - 1);
  return SkifCh_Addr(origin.link->dest_id(), origin.from);
}

ssize_t SkifCh_Send(SkifCh* channel, netaddr_t dst, const iovec* iov, int iov_count) {
  if (channel->near_dst == dst && iov_count == 1 && iov->iov_len <= rio::msg::kTinyBytesMax)
      [[likely]] {
    const size_t bytes = iov->iov_len;
    if (channel->port_now->send_tiny(channel->last.route, iov->iov_base,
                                     static_cast<uint32_t>(bytes))) [[likely]] {
      return static_cast<ssize_t>(bytes);
    }
    return send_near(channel, iov);
  }
  return send_any(*channel, dst, iov, iov_count);
}

ssize_t SkifCh_Recv(SkifCh* channel, iovec cont[SKIFCH_CONT_SIZE], int* cont_count) {
  const Inbox& inbox = *channel->inbox;
  const uint32_t give = channel->give;
  if (inbox.tail_number() == give) [[unlikely]] {
    return recv_later(*channel, cont, cont_count);
  }
  channel->give = give + 1;
  return show(inbox.numbered(give), cont, cont_count);
}

int SkifCh_Wait(SkifCh* channel, uint32_t timeout_ms) {
  MessagePort& port = *channel->port;
  const bool stuck = channel->retry.begin_wait();
  const auto news = [&] {
    const Inbox& inbox = channel->context->inbox();
    const bool come = channel->threads ? inbox.count() != channel->given_locked
                                       : inbox.tail_number() != channel->give;
    const uint64_t told = std::exchange(channel->ended, port.sessions_ended());
    return come || told != channel->ended || (stuck && channel->retry.may_have_room(port));
  };
  const int rc = rio::msg::wait(
      port, timeout_ms,
      [&] {
        drop_done(*channel);
        port.progress();
      },
      news);
  return rc < 0 ? fail(rc) : rc;
}

int SkifCh_NextGone(SkifCh* channel, uint32_t* dest_id, int* error) try {
  const Guard guard(*channel->port);
  const rio::msg::Link* const link = channel->news.next(*channel->port);
  if (link == nullptr) {
    return 0;
  }
  *dest_id = link->dest_id();
  *error = -link->error;
  return 1;
} catch (const std::bad_alloc&) {
  return 0;  // it is told later
}

int SkifCh_Progress(SkifCh* channel) {
  const Guard guard(*channel->port_now);
  drop_done(*channel);
  channel->port->progress();
  return channel->port->error() != 0 ? fail(channel->port->error()) : 0;
}

int SkifCh_RecvComp(SkifCh* channel) {
  const uint32_t done = channel->done;
  if (done == channel->give) [[unlikely]] {
    return complete_later(*channel);
  }
  channel->done = done + 1;
  if (static_cast<int32_t>(done + 1 - channel->inbox->run_end()) >= 0) [[unlikely]] {
    return end_of_run(*channel);
  }
  return 0;
}
