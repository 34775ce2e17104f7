// riomsg.h: contexts.
#include <bit>

#include "lib/api/handles.hpp"

using rio::api::is_memory;
using rio::api::no_throw;
using rio::msg::Context;
using rio::msg::Delivery;
using rio::msg::Guard;
using rio::msg::Kind;
using rio::msg::Link;
using rio::msg::Port;
using rio::msg::Route;
using rio::pmd::log_error;

namespace {

constexpr uint32_t kNumberBits = 8;
constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;
constexpr uint32_t kSessionShift = 32;

/// @return 0, -EINVAL, -ENOMEM.
[[gnu::noinline]] int find_route(rio_msg_context& context, rio_msg_address to) {
  const auto known = context.routes.find(to);
  if (known == context.routes.end()) {
    Route route;
    const int rc = context.context->port().route(to >> kNumberBits, to & kNumberMask,
                                                 context.context->id(), Kind::kData, &route);
    if (rc != 0) {
      return rc;
    }
    context.last_route = route;
    context.routes.emplace(to, route);
  } else {
    context.last_route = known->second;
  }
  context.last_to = to;
  return 0;
}

/// @param send of the port, with the route at hand. @return as rio_msg_send().
template <class Send>
[[nodiscard]] int send_one(rio_msg_context& context, rio_msg_address to, Send&& send) {
  if (context.last_to != to) [[unlikely]] {
    if (const int rc = find_route(context, to); rc != 0) {
      return rc;
    }
  }
  int rc = send();
  if (rc == -EAGAIN) [[unlikely]] {
    // What the first try took from the card may have made room: rio_msg_wait() must not sleep then.
    context.seen = context.context->port().activity();
    rc = send();
    context.stuck = rc == -EAGAIN;
  }
  return rc;
}

[[nodiscard]] Delivery delivery_of(const rio_msg_message& message) {
  Delivery delivery{};
  delivery.bytes = {const_cast<void*>(message.data), message.size_bytes};
  delivery.origin.link = reinterpret_cast<Link*>(static_cast<uintptr_t>(message.internal[0]));
  delivery.origin.session = static_cast<uint32_t>(message.internal[1] >> kSessionShift);
  delivery.origin.from = static_cast<uint32_t>(message.internal[1]);
  return delivery;
}

/// What no context but an endpoint understands is passed over. @return whether there is a message.
[[nodiscard]] bool at_message(Context& context) {
  while (!context.inbox().empty()) {
    const Kind kind = rio::msg::kind_of(context.inbox().at(0));
    if (kind == Kind::kData) {
      return true;
    }
    context.drop_oldest();
  }
  return false;
}

}  // namespace

int rio_msg_context_open(rio_msg_port* port, uint32_t number, rio_msg_context** out) {
  return no_throw([&] {
    const Guard guard(*port->port);
    auto context = std::make_unique<rio_msg_context>();
    const auto id = static_cast<uint16_t>(std::min(number, uint32_t{UINT16_MAX}));
    if (const int rc = Context::create(*port->port, id, &context->context); rc != 0) {
      return rc;
    }
    context->owner = port;
    context->ended = port->port->sessions_ended();
    ++port->users;
    *out = context.release();
    return 0;
  });
}

int rio_msg_context_close(rio_msg_context* context) {
  return no_throw([&] {
    if (context == nullptr) {
      return 0;
    }
    if (context->held != 0) {
      log_error("rio_msg_context_close: %u messages are not released; release them first",
                context->held);
      return -EBUSY;
    }
    const Guard guard(*context->owner->port);
    --context->owner->users;
    delete context;
    return 0;
  });
}

rio_msg_address rio_msg_self(const rio_msg_context* context) {
  return rio_msg_address_of(context->context->port().dest_id(), context->context->id());
}

int rio_msg_send(rio_msg_context* context, rio_msg_address to, const void* data,
                 size_t size_bytes) {
  return no_throw([&] {
    if (size_bytes > RIO_MSG_BYTES) [[unlikely]] {
      return -EMSGSIZE;
    }
    if (!is_memory("rio_msg_send", data, size_bytes)) [[unlikely]] {
      return -EINVAL;
    }
    Port& port = context->context->port();
    const Guard guard(port);
    return send_one(*context, to, [&] {
      return port.send(context->last_route, data, static_cast<uint32_t>(size_bytes));
    });
  });
}

int rio_msg_sendv(rio_msg_context* context, rio_msg_address to, const iovec* pieces, int count) {
  return no_throw([&] {
    if (count < 0 || count > static_cast<int>(RIO_MSG_PIECES) || (count > 0 && pieces == nullptr)) {
      return -EINVAL;
    }
    size_t size_bytes = 0;
    for (int i = 0; i < count; ++i) {
      if (pieces[i].iov_len > RIO_MSG_BYTES - size_bytes) {
        return -EMSGSIZE;
      }
      if (!is_memory("rio_msg_sendv", pieces[i].iov_base, pieces[i].iov_len)) {
        return -EINVAL;
      }
      size_bytes += pieces[i].iov_len;
    }
    Port& port = context->context->port();
    const Guard guard(port);
    return send_one(*context, to, [&] {
      return port.send(context->last_route, pieces, count, static_cast<uint32_t>(size_bytes));
    });
  });
}

int rio_msg_receive(rio_msg_context* context, rio_msg_message* out) {
  return no_throw([&] {
    Context& own = *context->context;
    Port& port = own.port();
    const Guard guard(port);
    if (!at_message(own)) {
      port.progress();
      if (!at_message(own)) {
        return port.error();
      }
    }
    const Delivery oldest = own.take_oldest();
    out->data = oldest.bytes.iov_base;
    out->size_bytes = oldest.bytes.iov_len;
    out->source = rio_msg_address_of(oldest.origin.link->dest_id(), oldest.origin.from);
    out->reserved = 0;
    out->internal[0] = reinterpret_cast<uintptr_t>(oldest.origin.link);
    out->internal[1] = uint64_t{oldest.origin.session} << kSessionShift | oldest.origin.from;
    ++context->held;
    return 1;
  });
}

void rio_msg_release(rio_msg_context* context, const rio_msg_message* message) {
  static_cast<void>(no_throw([&] {
    const Guard guard(context->context->port());
    if (context->held == 0) {
      log_error("rio_msg_release: nothing is held; release each message once");
      return -EINVAL;
    }
    context->context->give_back(delivery_of(*message));
    --context->held;
    return 0;
  }));
}

int rio_msg_wait(rio_msg_context* context, uint32_t timeout_ms) {
  return no_throw([&] {
    Context& own = *context->context;
    Port& port = own.port();
    const bool stuck = std::exchange(context->stuck, false);
    const auto news = [&] {
      return at_message(own) || port.sessions_ended() != context->ended ||
             (stuck && port.activity() != context->seen);
    };
    const int rc = rio::msg::wait(
        port, timeout_ms, [&] { port.progress(); }, news);
    const Guard guard(port);
    context->ended = port.sessions_ended();
    return rc;
  });
}
