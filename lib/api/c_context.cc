// riomsg.h: contexts.
#include "lib/api/handles.hpp"

using rio::api::begin;
using rio::api::guarded;
using rio::api::Memory;
using rio::api::no_throw;
using rio::msg::Delivery;
using rio::msg::Guard;
using rio::msg::MessagePort;
using rio::tag::LongMessages;
using rio::tag::RecvRequest;
using rio::tag::SendRequest;
using rio::tag::Unexpected;

namespace {

constexpr uint32_t kSessionShift = 32;

/// @return 0; -EAGAIN: something waits that is to go there first; -EINVAL.
[[gnu::noinline]] int find_route(rio_msg_context& context, rio_msg_address to) {
  context.last = {};
  const rio::msg::Route* const route = context.engine->route(to);
  if (route == nullptr) {
    return -EINVAL;
  }
  const uint64_t seen = context.engine->port().activity();
  if (context.engine->has_to_send(to)) {
    context.retry.note_stuck(seen);
    return -EAGAIN;
  }
  context.last = {to, *route};
  return 0;
}

/// @param send of the port, with the route at hand. @return as rio_msg_send().
template <class Send>
[[nodiscard]] int send_one(rio_msg_context& context, rio_msg_address to, Send&& send) {
  if (context.last.address != to) [[unlikely]] {
    if (const int rc = find_route(context, to); rc != 0) {
      return rc;
    }
  }
  return context.retry.send(context.engine->port(), send);
}

[[nodiscard]] Delivery delivery_of(const rio_msg_message& message) {
  Delivery delivery{};
  delivery.bytes = {const_cast<void*>(message.data), message.size_bytes};
  delivery.origin.link =
      reinterpret_cast<rio::msg::Link*>(static_cast<uintptr_t>(message.internal[0]));
  delivery.origin.session = static_cast<uint32_t>(message.internal[1] >> kSessionShift);
  delivery.origin.from = static_cast<uint32_t>(message.internal[1]);
  return delivery;
}

/// A long message, which is not here, or not in one piece. @return null: it is a short one.
[[nodiscard]] Unexpected* arrival_of(const rio_msg_message& message) {
  return message.data != nullptr
             ? nullptr
             : reinterpret_cast<Unexpected*>(static_cast<uintptr_t>(message.internal[0]));
}

void show(const Unexpected& arrival, rio_msg_message* out) {
  *out = {};
  out->size_bytes = arrival.length_bytes;
  out->source = arrival.source;
  out->internal[0] = reinterpret_cast<uintptr_t>(&arrival);
}

void show(const Delivery& delivery, rio_msg_message* out) {
  out->data = delivery.bytes.iov_base;
  out->size_bytes = delivery.bytes.iov_len;
  out->source = rio_msg_address_of(delivery.origin.link->dest_id(), delivery.origin.from);
  out->reserved = 0;
  out->internal[0] = reinterpret_cast<uintptr_t>(delivery.origin.link);
  out->internal[1] = uint64_t{delivery.origin.session} << kSessionShift | delivery.origin.from;
}

/// Copy a short message, which is used up. @return 1.
int take_short(rio_msg_context& context, const rio_msg_message& message, void* buffer,
               uint64_t capacity_bytes, RecvRequest& request) {
  request.length_bytes = message.size_bytes;
  request.from = message.source;
  request.status = message.size_bytes > capacity_bytes ? -EMSGSIZE : 0;
  if (const uint64_t fits = std::min<uint64_t>(message.size_bytes, capacity_bytes); fits != 0) {
    std::memcpy(buffer, message.data, fits);
  }
  context.engine->context().give_back(delivery_of(message));
  return 1;
}

void attend(rio_msg_context& context) {
  if (context.engine->busy()) [[unlikely]] {
    context.engine->attend();
  }
}

void progress(rio_msg_context& context) {
  context.engine->port().progress();
  attend(context);
}

}  // namespace

void rio::api::describe(const tag::Request& request, rio_msg_done* done) {
  if (request.is_receive) {
    const auto& receive = static_cast<const RecvRequest&>(request);
    done->is_take = 1;
    done->size_bytes = receive.length_bytes;
    done->peer = receive.from;
  } else {
    const auto& send = static_cast<const SendRequest&>(request);
    done->size_bytes = send.length_bytes;
    done->peer = send.to;
  }
}

int rio_msg_context_open(rio_msg_port* port, uint32_t number, rio_msg_context** out) {
  return rio::api::open(port, number, out, [&](rio_msg_context& context, uint16_t id) {
    context.ended = port->port->sessions_ended();
    return LongMessages::create(*port->port, id, &context.engine);
  });
}

int rio_msg_context_close(rio_msg_context* context) {
  if (context != nullptr && context->held != 0) {
    rio::base::log_error("rio_msg_context_close: %u messages are held; release or take them first",
                         context->held);
    return -EBUSY;
  }
  return rio::api::close(context);
}

rio_msg_address rio_msg_self(const rio_msg_context* context) {
  return context->engine->self();
}

int rio_msg_send(rio_msg_context* context, rio_msg_address to, const void* data,
                 size_t size_bytes) {
  return no_throw([&] {
    if (size_bytes > RIO_MSG_BYTES) [[unlikely]] {
      return -EMSGSIZE;
    }
    if (!Memory{"rio_msg_send", data, size_bytes}.exists()) [[unlikely]] {
      return -EINVAL;
    }
    MessagePort& port = context->engine->port();
    const Guard guard(port);
    return send_one(*context, to, [&] {
      return port.send(context->last.route, data, static_cast<uint32_t>(size_bytes));
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
      if (!Memory{"rio_msg_sendv", pieces[i].iov_base, pieces[i].iov_len}.exists()) {
        return -EINVAL;
      }
      size_bytes += pieces[i].iov_len;
    }
    MessagePort& port = context->engine->port();
    const Guard guard(port);
    return send_one(*context, to, [&] {
      return port.send(context->last.route, pieces, count, static_cast<uint32_t>(size_bytes));
    });
  });
}

int rio_msg_receive(rio_msg_context* context, rio_msg_message* out) {
  MessagePort& port = context->engine->port();
  return guarded(port, [&] {
    LongMessages& messages = *context->engine;
    attend(*context);
    if (!messages.look()) {
      port.progress();
      if (!messages.look()) {
        return port.error();
      }
    }
    if (const Unexpected* const arrival = messages.shown(); arrival != nullptr) {
      show(*arrival, out);
    } else {
      show(messages.context().take_oldest(), out);
    }
    ++context->held;
    return 1;
  });
}

void rio_msg_release(rio_msg_context* context, const rio_msg_message* message) {
  static_cast<void>(guarded(context->engine->port(), [&] {
    if (context->held == 0) {
      rio::base::log_error("rio_msg_release: nothing is held; release each message once");
      return -EINVAL;
    }
    if (Unexpected* const arrival = arrival_of(*message); arrival != nullptr) {
      context->engine->refuse(*arrival);
    } else {
      context->engine->context().give_back(delivery_of(*message));
    }
    --context->held;
    return 0;
  }));
}

int rio_msg_accept_long(rio_msg_context* context, uint64_t size_bytes_max) {
  return guarded(context->engine->port(), [&] { return context->engine->accept(size_bytes_max); });
}

int rio_msg_send_any(rio_msg_context* context, rio_msg_address to, const void* data,
                     uint64_t size_bytes, void* user, rio_msg_request** request,
                     rio_msg_done* done) {
  return begin<SendRequest>(*context, {__func__, data, size_bytes}, user, request, done,
                            [&](SendRequest& mine) {
                              context->last = {};  // messages that wait now go first
                              return context->engine->send(to, data, size_bytes, mine);
                            });
}

int rio_msg_take(rio_msg_context* context, const rio_msg_message* message, void* buffer,
                 uint64_t capacity_bytes, void* user, rio_msg_request** request,
                 rio_msg_done* done) {
  const auto take = [&](RecvRequest& mine) {
    if (context->held == 0) {
      rio::base::log_error("rio_msg_take: nothing is held; take each message once");
      return -EINVAL;
    }
    Unexpected* const arrival = arrival_of(*message);
    const int rc = arrival != nullptr
                       ? context->engine->receive(*arrival, buffer, capacity_bytes, mine)
                       : take_short(*context, *message, buffer, capacity_bytes, mine);
    context->held -= rc >= 0 ? 1 : 0;
    return rc;
  };
  return begin<RecvRequest>(*context, {__func__, buffer, capacity_bytes}, user, request, done,
                            take);
}

int rio_msg_cancel(rio_msg_context* context, rio_msg_request* request) {
  return rio::api::cancel(*context, request);
}

int rio_msg_next_done(rio_msg_context* context, rio_msg_done* done) {
  return guarded(context->engine->port(), [&] {
    attend(*context);
    return rio::api::end(context->requests, context->engine->next_done(), done);
  });
}

int rio_msg_wait_done(rio_msg_context* context, rio_msg_request* request, uint32_t timeout_ms,
                      rio_msg_done* done) {
  return rio::api::wait_done(*context, request, timeout_ms, done, [&] { progress(*context); });
}

int rio_msg_wait(rio_msg_context* context, uint32_t timeout_ms) {
  return no_throw([&] {
    MessagePort& port = context->engine->port();
    const bool stuck = context->retry.begin_wait();
    const auto news = [&] {
      const uint64_t told = std::exchange(context->ended, port.sessions_ended());
      return told != context->ended || context->engine->look() || context->engine->has_done() ||
             (stuck && context->retry.may_have_room(port));
    };
    return rio::msg::wait(
        port, timeout_ms, [&] { progress(*context); }, news);
  });
}
