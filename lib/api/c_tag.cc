// riomsg.h: endpoints of tagged messages.
#include "lib/api/handles.hpp"

using rio::api::begin;
using rio::api::guarded;
using rio::tag::Message;
using rio::tag::MessageInfo;
using rio::tag::RecvRequest;
using rio::tag::SendRequest;
using rio::tag::TaggedContext;

namespace {

[[nodiscard]] rio::tag::Pattern pattern_of(const rio_tag_pattern& pattern) {
  return {pattern.bits, pattern.ignore, pattern.source};
}

void tell(const MessageInfo& from, rio_tag_info* out) {
  *out = {from.bits, from.length_bytes, from.source, 0};
}

}  // namespace

void rio::api::describe(const tag::Request& request, rio_tag_done* done) {
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
    return TaggedContext::create(*port->port, id, {}, &tag.engine);
  });
}

void rio_tag_close(rio_tag* tag) {
  static_cast<void>(rio::api::close(tag));
}

rio_msg_address rio_tag_self(const rio_tag* tag) {
  return tag->engine->self();
}

int rio_tag_send(rio_tag* tag, rio_msg_address to, uint64_t bits, const void* data,
                 uint64_t size_bytes, void* user, rio_tag_request** request, rio_tag_done* done) {
  return begin<SendRequest>(
      *tag, {__func__, data, size_bytes}, user, request, done,
      [&](SendRequest& mine) { return tag->engine->send(to, bits, data, size_bytes, mine); });
}

int rio_tag_send_sync(rio_tag* tag, rio_msg_address to, uint64_t bits, const void* data,
                      uint64_t size_bytes, void* user, rio_tag_request** request,
                      rio_tag_done* done) {
  return begin<SendRequest>(
      *tag, {__func__, data, size_bytes}, user, request, done,
      [&](SendRequest& mine) { return tag->engine->send_sync(to, bits, data, size_bytes, mine); });
}

int rio_tag_receive(rio_tag* tag, const rio_tag_pattern* pattern, void* buffer,
                    uint64_t capacity_bytes, void* user, rio_tag_request** request,
                    rio_tag_done* done) {
  return begin<RecvRequest>(
      *tag, {__func__, buffer, capacity_bytes}, user, request, done, [&](RecvRequest& mine) {
        return tag->engine->receive(pattern_of(*pattern), buffer, capacity_bytes, mine);
      });
}

int rio_tag_probe(rio_tag* tag, const rio_tag_pattern* pattern, rio_tag_info* info) {
  return guarded(tag->engine->port(), [&] {
    MessageInfo found{};
    if (!tag->engine->probe(pattern_of(*pattern), &found)) {
      return 0;
    }
    tell(found, info);
    return 1;
  });
}

int rio_tag_claim(rio_tag* tag, const rio_tag_pattern* pattern, rio_tag_info* info,
                  rio_tag_message** message) {
  return guarded(tag->engine->port(), [&] {
    MessageInfo found{};
    Message* const claimed = tag->engine->claim(pattern_of(*pattern), &found);
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
  return begin<RecvRequest>(
      *tag, {__func__, buffer, capacity_bytes}, user, request, done, [&](RecvRequest& mine) {
        return tag->engine->receive_claimed(*reinterpret_cast<Message*>(message), buffer,
                                            capacity_bytes, mine);
      });
}

int rio_tag_cancel(rio_tag* tag, rio_tag_request* request) {
  return rio::api::cancel(*tag, request);
}

int rio_tag_progress(rio_tag* tag) {
  return guarded(tag->engine->port(), [&] {
    tag->engine->progress();
    return tag->engine->port().error();
  });
}

int rio_tag_next_done(rio_tag* tag, rio_tag_done* done) {
  return guarded(tag->engine->port(),
                 [&] { return rio::api::end(tag->requests, tag->engine->next_done(), done); });
}

int rio_tag_test(rio_tag* tag, rio_tag_request* request, rio_tag_done* done) {
  return guarded(tag->engine->port(), [&] {
    rio::tag::Request& asked = rio::api::request_of(request);
    return rio::api::end(tag->requests, tag->engine->test(asked) ? &asked : nullptr, done);
  });
}

int rio_tag_wait(rio_tag* tag, rio_tag_request* request, uint32_t timeout_ms, rio_tag_done* done) {
  return rio::api::wait_done(*tag, request, timeout_ms, done, [&] { tag->engine->progress(); });
}

int rio_tag_wait_any(rio_tag* tag, uint32_t timeout_ms) {
  return rio::api::no_throw([&] {
    TaggedContext& endpoint = *tag->engine;
    const auto news = [&] {
      return endpoint.has_done() || endpoint.stats().unexpected != tag->unexpected ||
             endpoint.port().sessions_ended() != tag->ended;
    };
    const int rc = rio::msg::wait(
        endpoint.port(), timeout_ms, [&] { endpoint.progress(); }, news);
    const rio::msg::Guard guard(endpoint.port());
    tag->unexpected = endpoint.stats().unexpected;
    tag->ended = endpoint.port().sessions_ended();
    return rc;
  });
}

int rio_tag_flush(rio_tag* tag, uint32_t timeout_ms) {
  return rio::api::flush(tag->engine->port(), timeout_ms, [&](uint32_t ms) {
    tag->engine->progress();
    return tag->engine->flush(ms);
  });
}
