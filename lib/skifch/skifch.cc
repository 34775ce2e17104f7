#include "lib/skifch/skifch.h"

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
using rio::msg::Delivery;
using rio::msg::Inbox;
using rio::msg::Kind;
using rio::msg::Link;
using rio::msg::Port;

static_assert(SKIFCH_MESSAGE_MAX == rio::msg::kPartBytesMax);
static_assert(SKIFCH_CHANNELS == rio::msg::kContexts);

struct SkifCh {
  std::shared_ptr<Port> port;
  std::unique_ptr<Context> context;
  uint32_t looked_at = 0;  // of the inbox, given by Recv and not yet done with
  netaddr_t source = 0;
  // The peer that was sent to last.
  uint32_t last_dest_id = 0;
  Link* last_link = nullptr;
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

[[gnu::noinline]] Link* find_link(SkifCh& channel, uint32_t dest_id) {
  Link* const link = channel.port->link(dest_id);
  if (link != nullptr) {
    channel.last_link = link;
    channel.last_dest_id = dest_id;
  }
  return link;
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
  return channel.release();
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void SkifCh_Close(SkifCh* channel) {
  if (channel == nullptr) {
    return;
  }
  channel->port->flush(1000);
  delete channel;
}

netaddr_t SkifCh_Self(const SkifCh* channel) {
  return SkifCh_Addr(channel->port->dest_id(), channel->context->id());
}

netaddr_t SkifCh_Source(const SkifCh* channel) {
  return channel->source;
}

ssize_t SkifCh_Send(SkifCh* channel, netaddr_t dst, const iovec* iov, int iov_count) {
  const uint32_t dest_id = dst >> kNumberBits;
  const uint32_t number = dst & kNumberMask;
  Link* link = channel->last_link;
  if (link == nullptr || channel->last_dest_id != dest_id) [[unlikely]] {
    link = find_link(*channel, dest_id);
  }
  if (number >= SKIFCH_CHANNELS || link == nullptr) [[unlikely]] {
    return fail(link == nullptr ? -ENOMEM : -EINVAL);
  }
  iovec first[SKIFCH_PIECES_MAX];
  int64_t bytes = 0;
  if (iov_count == 1 && iov->iov_len <= SKIFCH_MESSAGE_MAX) [[likely]] {
    bytes = static_cast<int64_t>(iov->iov_len);
  } else {
    bytes = cut(iov, iov_count, first, &iov_count);
    iov = first;
    if (bytes < 0) {
      return fail(static_cast<int>(bytes));
    }
  }
  const int rc = channel->port->send(*link, channel->context->id(), static_cast<uint16_t>(number),
                                     Kind::kData, iov, iov_count, static_cast<uint32_t>(bytes));
  return rc == 0 ? bytes : fail(rc);
}

ssize_t SkifCh_Recv(SkifCh* channel, iovec cont[SKIFCH_CONT_SIZE], int* cont_count) {
  Inbox& inbox = channel->context->inbox();
  if (inbox.count() == channel->looked_at) {
    channel->port->progress();
    if (inbox.count() == channel->looked_at) {
      return fail(channel->port->error() != 0 ? channel->port->error() : -EAGAIN);
    }
  }
  const Delivery& next = inbox.at(channel->looked_at);
  ++channel->looked_at;
  channel->source = SkifCh_Addr(next.link->dest_id(), next.from);
  cont[0] = {next.data, next.bytes};
  *cont_count = 1;
  return next.bytes;
}

int SkifCh_Progress(SkifCh* channel) {
  channel->port->progress();
  return channel->port->error() != 0 ? fail(channel->port->error()) : 0;
}

int SkifCh_RecvComp(SkifCh* channel) {
  if (channel->looked_at == 0) {
    return fail(-EINVAL);
  }
  --channel->looked_at;
  Inbox& inbox = channel->context->inbox();
  channel->port->give_back(inbox.at(0));
  inbox.pop();
  return 0;
}
