// riomsg.h: endpoints of tagged messages.
#include "lib/api/handles.hpp"

using rio::api::begin;
using rio::api::guarded;
using rio::api::is_memory;
using rio::api::no_throw;
using rio::msg::Guard;
using rio::tag::Message;
using rio::tag::MessageInfo;
using rio::tag::Pattern;
using rio::tag::RecvRequest;
using rio::tag::SendRequest;
using rio::tag::TaggedContext;

namespace {

[[nodiscard]] Pattern pattern_of(const rio_tag_pattern& pattern) {
  return {pattern.bits, pattern.ignore, pattern.source};
}

void tell(const MessageInfo& from, rio_tag_info* out) {
  *out = {from.bits, from.length_bytes, from.source, 0};
}

}  // namespace

void rio::api::tell(const tag::Request& request, rio_tag_request* handle, rio_tag_done* done) {
  if (done == nullptr) {
    return;
  }
  *done = {};
  done->user = request.user;
  done->request = handle;
  done->status = request.status;
  if (request.is_receive) {
    const auto& receive = static_cast<const RecvRequest&>(request);
    done->is_receive = 1;
    done->bits = receive.message_bits;
    done->size_bytes = receive.length_bytes;
    done->source = receive.from;
  }
}

int rio_tag_open(rio_msg_port* port, uint32_t number, rio_tag** out) {
  return rio::api::open(port, number, out, [&](rio_tag& tag, uint16_t id) {
    tag.ended = port->port->sessions_ended();
    return TaggedContext::create(*port->port, id, {}, &tag.endpoint);
  });
}

void rio_tag_close(rio_tag* tag) {
  const rio::base::NoCancel no_cancel;
  static_cast<void>(no_throw([&] {
    if (tag != nullptr) {
      const Guard guard(*tag->owner->port);
      --tag->owner->users;
      delete tag;
    }
    return 0;
  }));
}

rio_msg_address rio_tag_self(const rio_tag* tag) {
  return tag->endpoint->self();
}

int rio_tag_send(rio_tag* tag, rio_msg_address to, uint64_t bits, const void* data,
                 uint64_t size_bytes, void* user, rio_tag_request** request, rio_tag_done* done) {
  if (!is_memory("rio_tag_send", data, size_bytes)) [[unlikely]] {
    return -EINVAL;
  }
  return begin<SendRequest>(
      tag->endpoint->port(), tag->requests, user, request, done,
      [&](SendRequest& mine) { return tag->endpoint->send(to, bits, data, size_bytes, mine); });
}

int rio_tag_send_sync(rio_tag* tag, rio_msg_address to, uint64_t bits, const void* data,
                      uint64_t size_bytes, void* user, rio_tag_request** request,
                      rio_tag_done* done) {
  if (!is_memory("rio_tag_send_sync", data, size_bytes)) [[unlikely]] {
    return -EINVAL;
  }
  return begin<SendRequest>(tag->endpoint->port(), tag->requests, user, request, done,
                            [&](SendRequest& mine) {
                              return tag->endpoint->send_sync(to, bits, data, size_bytes, mine);
                            });
}

int rio_tag_receive(rio_tag* tag, const rio_tag_pattern* pattern, void* buffer,
                    uint64_t capacity_bytes, void* user, rio_tag_request** request,
                    rio_tag_done* done) {
  if (!is_memory("rio_tag_receive", buffer, capacity_bytes)) [[unlikely]] {
    return -EINVAL;
  }
  return begin<RecvRequest>(
      tag->endpoint->port(), tag->requests, user, request, done, [&](RecvRequest& mine) {
        return tag->endpoint->receive(pattern_of(*pattern), buffer, capacity_bytes, mine);
      });
}

int rio_tag_probe(rio_tag* tag, const rio_tag_pattern* pattern, rio_tag_info* info) {
  return guarded(tag->endpoint->port(), [&] {
    MessageInfo found{};
    if (!tag->endpoint->probe(pattern_of(*pattern), &found)) {
      return 0;
    }
    tell(found, info);
    return 1;
  });
}

int rio_tag_claim(rio_tag* tag, const rio_tag_pattern* pattern, rio_tag_info* info,
                  rio_tag_message** message) {
  return guarded(tag->endpoint->port(), [&] {
    MessageInfo found{};
    Message* const claimed = tag->endpoint->claim(pattern_of(*pattern), &found);
    if (claimed == nullptr) {
      return 0;
    }
    tell(found, info);
    *message = reinterpret_cast<rio_tag_message*>(claimed);
    return 1;
  });
}

int rio_tag_receive_claimed(rio_tag* tag, rio_tag_message* message, void* buffer,
                            uint64_t capacity_bytes, void* user, rio_tag_request** request,
                            rio_tag_done* done) {
  if (!is_memory("rio_tag_receive_claimed", buffer, capacity_bytes)) [[unlikely]] {
    return -EINVAL;
  }
  return begin<RecvRequest>(
      tag->endpoint->port(), tag->requests, user, request, done, [&](RecvRequest& mine) {
        return tag->endpoint->receive_claimed(*reinterpret_cast<Message*>(message), buffer,
                                              capacity_bytes, mine);
      });
}

int rio_tag_cancel(rio_tag* tag, rio_tag_request* request) {
  return rio::api::cancel(*tag->endpoint, rio::api::request_of(request));
}

int rio_tag_progress(rio_tag* tag) {
  return guarded(tag->endpoint->port(), [&] {
    tag->endpoint->progress();
    return tag->endpoint->port().error();
  });
}

int rio_tag_next_done(rio_tag* tag, rio_tag_done* done) {
  return guarded(tag->endpoint->port(), [&] {
    return rio::api::end<rio_tag_request>(tag->requests, tag->endpoint->next_done(), done);
  });
}

int rio_tag_test(rio_tag* tag, rio_tag_request* request, rio_tag_done* done) {
  return guarded(tag->endpoint->port(), [&] {
    rio::tag::Request& asked = rio::api::request_of(request);
    return rio::api::end<rio_tag_request>(tag->requests,
                                          tag->endpoint->test(asked) ? &asked : nullptr, done);
  });
}

int rio_tag_wait(rio_tag* tag, rio_tag_request* request, uint32_t timeout_ms, rio_tag_done* done) {
  return rio::api::wait_done(*tag->endpoint, tag->requests, request, timeout_ms, done,
                             [&] { tag->endpoint->progress(); });
}

int rio_tag_wait_any(rio_tag* tag, uint32_t timeout_ms) {
  return no_throw([&] {
    TaggedContext& endpoint = *tag->endpoint;
    const auto news = [&] {
      return endpoint.has_done() || endpoint.stats().unexpected != tag->unexpected ||
             endpoint.port().sessions_ended() != tag->ended;
    };
    const int rc = rio::msg::wait(
        endpoint.port(), timeout_ms, [&] { endpoint.progress(); }, news);
    const Guard guard(endpoint.port());
    tag->unexpected = endpoint.stats().unexpected;
    tag->ended = endpoint.port().sessions_ended();
    return rc;
  });
}

int rio_tag_flush(rio_tag* tag, uint32_t timeout_ms) {
  return rio::api::flush(tag->endpoint->port(), timeout_ms, [&](uint32_t ms) {
    tag->endpoint->progress();
    return tag->endpoint->flush(ms);
  });
}
