// riomsg.h: contexts.
#include <bit>

#include "lib/api/handles.hpp"
#include "lib/msg/address.hpp"

using rio::api::is_memory;
using rio::api::no_throw;
using rio::msg::Delivery;
using rio::msg::dest_id_of;
using rio::msg::Guard;
using rio::msg::Link;
using rio::msg::LongArrival;
using rio::msg::LongReceive;
using rio::msg::LongRequest;
using rio::msg::LongSend;
using rio::msg::MessageContext;
using rio::msg::MessagePort;
using rio::msg::number_of;
using rio::msg::Route;

namespace {

constexpr uint32_t kSessionShift = 32;

/// @return 0; -EAGAIN: something waits that is to go there first; -EINVAL.
[[gnu::noinline]] int find_route(rio_msg_context& context, rio_msg_address to) {
  context.last.forget();
  const Route* const route = context.messages->route(dest_id_of(to), number_of(to));
  if (route == nullptr) {
    return -EINVAL;
  }
  const uint64_t seen = context.context->port().activity();
  if (context.messages->has_to_send(dest_id_of(to), number_of(to))) {
    context.retry.note_stuck(seen);
    return -EAGAIN;
  }
  context.last.keep(to, *route);
  return 0;
}

/// @param send of the port, with the route at hand. @return as rio_msg_send().
template <class Send>
[[nodiscard]] int send_one(rio_msg_context& context, rio_msg_address to, Send&& send) {
  if (!context.last.is_of(to)) [[unlikely]] {
    if (const int rc = find_route(context, to); rc != 0) {
      return rc;
    }
  }
  return context.retry.send(context.context->port(), send);
}

[[nodiscard]] Delivery delivery_of(const rio_msg_message& message) {
  Delivery delivery{};
  delivery.bytes = {const_cast<void*>(message.data), message.size_bytes};
  delivery.origin.link = reinterpret_cast<Link*>(static_cast<uintptr_t>(message.internal[0]));
  delivery.origin.session = static_cast<uint32_t>(message.internal[1] >> kSessionShift);
  delivery.origin.from = static_cast<uint32_t>(message.internal[1]);
  return delivery;
}

/// A long message, which is not here, or not in one piece. @return null: it is a short one.
[[nodiscard]] LongArrival* arrival_of(const rio_msg_message& message) {
  return message.data != nullptr
             ? nullptr
             : reinterpret_cast<LongArrival*>(static_cast<uintptr_t>(message.internal[0]));
}

void show(const LongArrival& arrival, rio_msg_message* out) {
  *out = {};
  out->size_bytes = arrival.length_bytes;
  out->source = rio_msg_address_of(arrival.origin.link->dest_id(), arrival.origin.from);
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

[[nodiscard]] rio_msg_request* handle_of(LongRequest& request) {
  return reinterpret_cast<rio_msg_request*>(&request);
}
[[nodiscard]] LongRequest& request_of(rio_msg_request* handle) {
  return *reinterpret_cast<LongRequest*>(handle);
}

/// It has come to its end, and is the library's again. @param done may be null.
void end(rio_msg_context& context, LongRequest& request, rio_msg_done* done) {
  if (done != nullptr) {
    *done = {request.user,
             handle_of(request),
             request.status,
             request.is_receive ? 1u : 0u,
             request.length_bytes,
             rio_msg_address_of(request.dest_id, request.context),
             0};
  }
  context.messages->free(request);
}

/// It was done at once.
void tell(const rio_msg_done& at_once, rio_msg_done* done) {
  if (done != nullptr) {
    *done = at_once;
  }
}

void progress(rio_msg_context& context) {
  context.context->port().progress();
  if (context.messages->busy()) {
    context.messages->attend();
  }
}

}  // namespace

int rio_msg_context_open(rio_msg_port* port, uint32_t number, rio_msg_context** out) {
  const rio::base::NoCancel no_cancel;
  return no_throw([&] {
    const Guard guard(*port->port);
    auto context = std::make_unique<rio_msg_context>();
    const auto id = static_cast<uint16_t>(std::min(number, uint32_t{UINT16_MAX}));
    if (const int rc = MessageContext::create(*port->port, id, &context->context); rc != 0) {
      return rc;
    }
    context->messages = std::make_unique<rio::msg::LongMessages>(*context->context);
    context->owner = port;
    context->ended.begin(*port->port);
    ++port->users;
    *out = context.release();
    return 0;
  });
}

int rio_msg_context_close(rio_msg_context* context) {
  const rio::base::NoCancel no_cancel;
  return no_throw([&] {
    if (context == nullptr) {
      return 0;
    }
    if (context->held != 0) {
      rio::base::log_error(
          "rio_msg_context_close: %u messages are held; release or take them first", context->held);
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
    MessagePort& port = context->context->port();
    const Guard guard(port);
    return send_one(*context, to, [&] {
      return port.send(context->last.route(), data, static_cast<uint32_t>(size_bytes));
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
    MessagePort& port = context->context->port();
    const Guard guard(port);
    return send_one(*context, to, [&] {
      return port.send(context->last.route(), pieces, count, static_cast<uint32_t>(size_bytes));
    });
  });
}

int rio_msg_receive(rio_msg_context* context, rio_msg_message* out) {
  return no_throw([&] {
    MessageContext& own = *context->context;
    MessagePort& port = own.port();
    const Guard guard(port);
    if (context->messages->busy()) [[unlikely]] {
      context->messages->attend();
    }
    if (!context->messages->look()) {
      port.progress();
      if (!context->messages->look()) {
        return port.error();
      }
    }
    if (const LongArrival* const arrival = context->messages->shown(); arrival != nullptr) {
      show(*arrival, out);
    } else {
      show(own.take_oldest(), out);
    }
    ++context->held;
    return 1;
  });
}

void rio_msg_release(rio_msg_context* context, const rio_msg_message* message) {
  static_cast<void>(no_throw([&] {
    const Guard guard(context->context->port());
    if (context->held == 0) {
      rio::base::log_error("rio_msg_release: nothing is held; release each message once");
      return -EINVAL;
    }
    if (LongArrival* const arrival = arrival_of(*message); arrival != nullptr) {
      context->messages->refuse(*arrival);
    } else {
      context->context->give_back(delivery_of(*message));
    }
    --context->held;
    return 0;
  }));
}

int rio_msg_accept_long(rio_msg_context* context, uint64_t size_bytes_max) {
  return no_throw([&] {
    const Guard guard(context->context->port());
    return context->messages->accept(size_bytes_max);
  });
}

int rio_msg_send_any(rio_msg_context* context, rio_msg_address to, const void* data,
                     uint64_t size_bytes, void* user, rio_msg_request** request,
                     rio_msg_done* done) {
  return no_throw([&] {
    const Guard guard(context->context->port());
    LongSend* send = nullptr;
    context->last.forget();  // what waits now goes before what is sent next
    const int rc =
        context->messages->send(dest_id_of(to), number_of(to), data, size_bytes, user, &send);
    if (rc == 1) {
      tell({user, nullptr, 0, 0, size_bytes, to, 0}, done);
    } else if (rc == 0 && request != nullptr) {
      *request = handle_of(*send);
    }
    return rc;
  });
}

int rio_msg_take(rio_msg_context* context, const rio_msg_message* message, void* buffer,
                 uint64_t capacity_bytes, void* user, rio_msg_request** request,
                 rio_msg_done* done) {
  return no_throw([&] {
    if (buffer == nullptr && capacity_bytes != 0) {
      rio::base::log_error("rio_msg_take: a buffer of %llu bytes at NULL; say where to",
                           static_cast<unsigned long long>(capacity_bytes));
      return -EINVAL;
    }
    const Guard guard(context->context->port());
    if (context->held == 0) {
      rio::base::log_error("rio_msg_take: nothing is held; take each message once");
      return -EINVAL;
    }
    const uint64_t size = message->size_bytes;
    int status = size > capacity_bytes ? -EMSGSIZE : 0;
    int rc = 1;
    LongReceive* receive = nullptr;
    if (LongArrival* const arrival = arrival_of(*message); arrival != nullptr) {
      rc = context->messages->receive(*arrival, buffer, capacity_bytes, user, &status, &receive);
    } else {
      if (const uint64_t fits = std::min(size, capacity_bytes); fits != 0) {
        std::memcpy(buffer, message->data, fits);
      }
      context->context->give_back(delivery_of(*message));
    }
    context->held -= rc >= 0 ? 1 : 0;
    if (rc == 1) {
      tell({user, nullptr, status, 1, size, message->source, 0}, done);
    } else if (rc == 0 && request != nullptr) {
      *request = handle_of(*receive);
    }
    return rc;
  });
}

int rio_msg_cancel(rio_msg_context* context, rio_msg_request* request) {
  return no_throw([&] {
    const Guard guard(context->context->port());
    return context->messages->cancel(request_of(request));
  });
}

int rio_msg_next_done(rio_msg_context* context, rio_msg_done* done) {
  return no_throw([&] {
    const Guard guard(context->context->port());
    if (context->messages->busy()) {
      context->messages->attend();
    }
    LongRequest* const request = context->messages->next_done();
    if (request == nullptr) {
      return 0;
    }
    end(*context, *request, done);
    return 1;
  });
}

int rio_msg_wait_done(rio_msg_context* context, rio_msg_request* request, uint32_t timeout_ms,
                      rio_msg_done* done) {
  return no_throw([&] {
    MessagePort& port = context->context->port();
    const int rc = rio::msg::wait(
        port, timeout_ms, [&] { progress(*context); }, [&] { return request_of(request).done; });
    if (rc != 1) {
      return rc;
    }
    const Guard guard(port);
    static_cast<void>(context->messages->test(request_of(request)));
    end(*context, request_of(request), done);
    return 1;
  });
}

int rio_msg_wait(rio_msg_context* context, uint32_t timeout_ms) {
  return no_throw([&] {
    MessagePort& port = context->context->port();
    const bool stuck = context->retry.begin_wait();
    const auto news = [&] {
      const bool gone = context->ended.take(port);
      return gone || context->messages->look() || context->messages->has_done() ||
             (stuck && context->retry.may_have_room(port));
    };
    return rio::msg::wait(
        port, timeout_ms, [&] { progress(*context); }, news);
  });
}
