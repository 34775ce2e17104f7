#include "lib/skifch/skifch.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "pmd/bus/log.hpp"

using rio::msg::Context;
using rio::msg::Inbox;
using rio::msg::Kind;
using rio::msg::Port;
using rio::msg::Route;

static_assert(SKIFCH_MESSAGE_MAX == rio::msg::kPartBytesMax);
static_assert(SKIFCH_CHANNELS == rio::msg::kContexts);

/// Nothing can be sent there.
static rio::msg::Outflow full;

struct SkifCh {
  std::shared_ptr<Port> port;
  std::unique_ptr<Context> context;
  // Numbers of the inbox: what Recv gives next, and what RecvComp takes back next. What was taken
  // back is dropped by runs.
  uint32_t give = 0;
  uint32_t done = 0;
  Port* port_now = nullptr;      // `port`
  const Inbox* inbox = nullptr;  // of `context`
  // Who was sent to last; at first somebody whom nothing can be sent to.
  netaddr_t last_dst = SKIFCH_CHANNELS;
  Route last_route{nullptr, &full, nullptr, 0};
};

namespace {

constexpr uint32_t kNumberBits = 8;
constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;

int fail(int error) {
  errno = -error;
  return -1;
}

/// Ports of this thread, so that channels share a card.
std::map<std::string, std::weak_ptr<Port>>& ports() {
  static thread_local std::map<std::string, std::weak_ptr<Port>> all;
  return all;
}

int open_port(const char* card, const SkifCh_Options& options, std::shared_ptr<Port>* out) {
  std::string name = card;
  name += "/" + std::to_string(options.queue_pair);
  name += "/" + std::to_string(options.dest_id);
  *out = ports()[name].lock();
  if (*out != nullptr) {
    return 0;
  }
  rio::msg::PortConfig config;
  config.card = card;
  config.queue_pair = options.queue_pair;
  config.dest_id = options.dest_id;
  config.buffers = options.buffers != 0 ? options.buffers : config.buffers;
  config.share = options.share != 0 ? options.share : config.share;
  config.connect_ms = options.connect_ms != 0 ? options.connect_ms : config.connect_ms;
  std::unique_ptr<Port> port;
  if (const int rc = Port::open(config, &port); rc != 0) {
    return rc;
  }
  *out = std::move(port);
  ports()[name] = *out;
  return 0;
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
  const uint32_t number = dst & kNumberMask;
  if (number >= SKIFCH_CHANNELS) {
    return -EINVAL;
  }
  const int rc = channel.port->route(dst >> kNumberBits, number, channel.context->id(), Kind::kData,
                                     &channel.last_route);
  if (rc == 0) {
    channel.last_dst = dst;
  }
  return rc;
}

[[gnu::noinline]] ssize_t send_any(SkifCh& channel, netaddr_t dst, const iovec* iov, int count) {
  const bool known = channel.last_dst == dst && channel.last_route.link != nullptr;
  int rc = known ? 0 : find_route(channel, dst);
  if (rc != 0) {
    return fail(rc);
  }
  if (count == 1 && iov->iov_len <= SKIFCH_MESSAGE_MAX) {
    const size_t bytes = iov->iov_len;
    rc = channel.port->send(channel.last_route, iov->iov_base, static_cast<uint32_t>(bytes));
    return rc == 0 ? static_cast<ssize_t>(bytes) : fail(rc);
  }
  iovec first[SKIFCH_PIECES_MAX];
  const int64_t bytes = cut(iov, count, first, &count);
  if (bytes < 0) {
    return fail(static_cast<int>(bytes));
  }
  rc = channel.port->send(channel.last_route, first, count, static_cast<uint32_t>(bytes));
  return rc == 0 ? bytes : fail(rc);
}

/// What RecvComp took back goes back to the sender. @return 0.
[[gnu::noinline]] int drop_done(SkifCh& channel) {
  while (channel.inbox->head() != channel.done) {
    const uint32_t n = std::min(channel.done - channel.inbox->head(), channel.inbox->run());
    channel.context->drop_oldest(n);
  }
  return 0;
}

/// Nothing has come yet.
[[gnu::noinline]] ssize_t recv_later(SkifCh* channel, iovec* cont, int* cont_count) {
  drop_done(*channel);
  channel->port->progress();
  if (channel->inbox->tail_number() != channel->give) {
    return SkifCh_Recv(channel, cont, cont_count);
  }
  return fail(channel->port->error() != 0 ? channel->port->error() : -EAGAIN);
}

}  // namespace

SkifCh* SkifCh_Open(const char* card, uint32_t number, const SkifCh_Options* options) try {
  if (card == nullptr || number >= SKIFCH_CHANNELS) {
    rio::pmd::log_error("SkifCh_Open: channels have numbers from 0 to %d, and a card",
                        SKIFCH_CHANNELS - 1);
    errno = EINVAL;
    return nullptr;
  }
  auto channel = std::make_unique<SkifCh>();
  int rc = open_port(card, options != nullptr ? *options : SkifCh_Options{}, &channel->port);
  rc = rc != 0 ? rc
               : Context::create(*channel->port, static_cast<uint16_t>(number), &channel->context);
  if (rc != 0) {
    errno = -rc;
    return nullptr;
  }
  channel->port_now = channel->port.get();
  channel->inbox = &channel->context->inbox();
  return channel.release();
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void SkifCh_Close(SkifCh* channel) {
  if (channel == nullptr) {
    return;
  }
  drop_done(*channel);
  channel->port->flush(1000);
  delete channel;
}

netaddr_t SkifCh_Self(const SkifCh* channel) {
  return SkifCh_Addr(channel->port->dest_id(), channel->context->id());
}

netaddr_t SkifCh_Source(const SkifCh* channel) {
  const rio::msg::Origin origin =
      channel->context->inbox().origin(channel->give - 1 - channel->inbox->head());
  return SkifCh_Addr(origin.link->dest_id(), origin.from);
}

ssize_t SkifCh_Send(SkifCh* channel, netaddr_t dst, const iovec* iov, int iov_count) {
  if (channel->last_dst == dst && iov_count == 1 && iov->iov_len <= rio::msg::kTinyBytesMax)
      [[likely]] {
    const size_t bytes = iov->iov_len;
    if (channel->port_now->send_tiny(channel->last_route, iov->iov_base,
                                     static_cast<uint32_t>(bytes))) [[likely]] {
      return static_cast<ssize_t>(bytes);
    }
  }
  return send_any(*channel, dst, iov, iov_count);
}

ssize_t SkifCh_Recv(SkifCh* channel, iovec cont[SKIFCH_CONT_SIZE], int* cont_count) {
  const Inbox& inbox = *channel->inbox;
  const uint32_t give = channel->give;
  if (inbox.tail_number() == give) [[unlikely]] {
    return recv_later(channel, cont, cont_count);
  }
  channel->give = give + 1;
  const iovec& next = inbox.numbered(give);
  cont[0] = next;
  *cont_count = 1;
  return static_cast<ssize_t>(next.iov_len);
}

int SkifCh_Progress(SkifCh* channel) {
  drop_done(*channel);
  channel->port->progress();
  return channel->port->error() != 0 ? fail(channel->port->error()) : 0;
}

int SkifCh_RecvComp(SkifCh* channel) {
  const uint32_t done = channel->done;
  if (done == channel->give) [[unlikely]] {
    return fail(-EINVAL);
  }
  channel->done = done + 1;
  if (done + 1 == channel->inbox->run_end()) [[unlikely]] {
    return drop_done(*channel);
  }
  return 0;
}
