// riomsg.h: ports.
#include "lib/api/handles.hpp"

using rio::api::guarded;
using rio::api::no_throw;
using rio::msg::Guard;
using rio::msg::MessagePort;
using rio::msg::PortConfig;
using rio::msg::Threads;

static_assert(RIO_MSG_CONTEXTS == rio::msg::kContexts);
static_assert(RIO_MSG_BYTES == rio::msg::kPartBytesMax);
static_assert(RIO_MSG_LONG_BYTES == rio::tag::kLengthMax);
static_assert(RIO_TAG_BYTES == rio::tag::kLengthMax);
static_assert(RIO_TAG_ANY == rio::tag::kAnySource);

namespace {

constexpr uint32_t kCloseMs = 1000;

/// The caller's options. @return as rio::api::read_options().
[[nodiscard]] int read_port_options(const rio_msg_options* given, rio_msg_options* out) {
  rio_msg_options options{};
  if (const int rc = rio::api::read_options("rio_msg_options", given, &options); rc != 0) {
    return rc;
  }
  if (options.threads > 1 || options.sleeps > 1) {
    rio::base::log_error("rio_msg_options: threads is %u and sleeps %u; each is 0 or 1",
                         options.threads, options.sleeps);
    return -EINVAL;
  }
  *out = options;
  return 0;
}

void set_unless_zero(uint32_t value, uint32_t* out) {
  if (value != 0) {
    *out = value;
  }
}

[[nodiscard]] PortConfig to_config(const char* card, const rio_msg_options& options) {
  PortConfig config;
  config.card = card;
  config.queue_pair = options.queue_pair;
  config.dest_id = options.dest_id;
  set_unless_zero(options.buffers, &config.buffers);
  set_unless_zero(options.share, &config.share);
  set_unless_zero(options.connect_ms, &config.connect_ms);
  set_unless_zero(options.deliver_ms, &config.deliver_ms);
  set_unless_zero(options.response_timeout_us, &config.response_timeout_us);
  config.threads = options.threads != 0 ? Threads::kPerContext : Threads::kOne;
  config.sleeps = options.sleeps != 0;
  return config;
}

/// Whether an event loop may sleep for this port.
[[nodiscard]] int check_fd(const char* function, const MessagePort& port) {
  if (!port.config().sleeps || port.config().threads != Threads::kOne) {
    rio::base::log_error("%s: the port was opened with sleeps %d and threads %d; it wants 1 and 0",
                         function, port.config().sleeps ? 1 : 0,
                         port.config().threads != Threads::kOne ? 1 : 0);
    return -ENOTSUP;
  }
  return 0;
}

}  // namespace

uint32_t rio_msg_api_version(void) {
  return RIO_MSG_API_VERSION;
}

int rio_msg_open(const char* card, const rio_msg_options* options, rio_msg_port** out) {
  const rio::base::NoCancel no_cancel;
  return no_throw([&] {
    if (card == nullptr || out == nullptr) {
      rio::base::log_error("rio_msg_open: the card's name, or where the port goes, is NULL");
      return -EINVAL;
    }
    rio_msg_options read{};
    int rc = read_port_options(options, &read);
    auto port = std::make_unique<rio_msg_port>();
    rc = rc != 0 ? rc : MessagePort::open(to_config(card, read), &port->port);
    if (rc == 0) {
      *out = port.release();
    }
    return rc;
  });
}

int rio_msg_close(rio_msg_port* port) {
  const rio::base::NoCancel no_cancel;
  return no_throw([&] {
    if (port == nullptr) {
      return 0;
    }
    if (port->users != 0) {
      rio::base::log_error("rio_msg_close: %u contexts and endpoints are open; close them first",
                           port->users);
      return -EBUSY;
    }
    static_cast<void>(port->port->flush(kCloseMs));
    delete port;
    return 0;
  });
}

uint32_t rio_msg_dest_id(const rio_msg_port* port) {
  return port->port->dest_id();
}

int rio_msg_progress(rio_msg_port* port) {
  return guarded(*port->port, [&] {
    const uint32_t taken = port->port->progress();
    return port->port->error() != 0 ? port->port->error() : static_cast<int>(taken);
  });
}

int rio_msg_flush(rio_msg_port* port, uint32_t timeout_ms) {
  return rio::api::flush(*port->port, timeout_ms, [&](uint32_t ms) {
    port->port->progress();
    return port->port->flush(ms);
  });
}

int rio_msg_next_peer_event(rio_msg_port* port, rio_msg_peer_event* out) {
  return guarded(*port->port, [&] {
    const rio::msg::Link* const link = port->news.next(*port->port);
    if (link == nullptr) {
      return 0;
    }
    *out = {link->dest_id(), link->error};
    return 1;
  });
}

int rio_msg_peer_up(rio_msg_port* port, uint32_t dest_id) {
  const Guard guard(*port->port);
  const rio::msg::Link* const link = port->port->known_link(dest_id);
  return link != nullptr && link->state == rio::msg::LinkState::kUp ? 1 : 0;
}

int rio_msg_get_stats(rio_msg_port* port, rio_msg_stats* out, size_t size_bytes) {
  const Guard guard(*port->port);
  const rio::msg::PortStats& stats = port->port->stats();
  const rio_msg_stats all = {stats.received,  stats.again,    stats.early,  stats.twice,
                             stats.bad,       stats.cut_off,  stats.copied, stats.placed,
                             stats.overslept, stats.restarts, stats.rests};
  return rio::api::write_counts("rio_msg_get_stats", all, out, size_bytes);
}

int rio_msg_fd(rio_msg_port* port) {
  const int rc = check_fd("rio_msg_fd", *port->port);
  return rc != 0 ? rc : port->port->irq_fd();
}

int rio_msg_arm(rio_msg_port* port, uint32_t* timeout_ms) {
  return no_throw([&] {
    if (const int rc = check_fd("rio_msg_arm", *port->port); rc != 0) {
      return rc;
    }
    rio::msg::Sleeper sleeper(*port->port);
    const bool nothing = sleeper.prepare([] {});
    // Messages that came in the caller's own calls are news, too: it may not have looked again
    // since.
    const uint64_t now = port->port->activity();
    if (!nothing || std::exchange(port->armed, now) != now) {
      return port->port->error() != 0 ? port->port->error() : 1;
    }
    const int rc = sleeper.enlist();
    *timeout_ms = rc == 0 ? sleeper.bound_ms() : *timeout_ms;
    return rc;
  });
}
