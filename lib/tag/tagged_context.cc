#include "lib/tag/tagged_context.hpp"

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"

namespace rio::tag {
namespace {

[[nodiscard]] MessageInfo info_of(const Message& message) {
  return {message.source, message.bits, message.length_bytes,
          static_cast<const Unexpected&>(message).immediate};
}

}  // namespace

int TaggedContext::create(msg::MessagePort& port, uint16_t context, const TaggedConfig& config,
                          std::unique_ptr<TaggedContext>* out) {
  std::unique_ptr<TaggedContext> made;
  TaggedConfig own = config;
  if (own.eager_bytes == 0) {
    const auto [always, read, alone] = port.copied_bytes();
    own.eager_bytes = always;
    own.read_bytes = own.read_bytes != 0 ? own.read_bytes : read;
    own.lone_bytes = own.lone_bytes != 0 ? own.lone_bytes : alone;
  }
  own.read_bytes = own.read_bytes != 0 ? own.read_bytes : own.eager_bytes;
  int rc = make(port, context, own, &made);
  rc = rc != 0 ? rc : made->state_.context->accept_large();
  if (rc == 0) {
    *out = std::move(made);
  }
  return rc;
}

/// A receive has matched a message that was unexpected. @return 1, 0.
int TaggedContext::take_matched(Unexpected& message, RecvRequest& request) {
  const int rc = take(message, request);
  if (rc >= 0) {
    return rc;
  }
  store_.drop(message);
  request.status = rc;
  return 1;
}

bool TaggedContext::probe(const Pattern& pattern, MessageInfo* info) {
  progress();
  const Message* const message = state_.matcher.probe(pattern);
  if (message == nullptr) {
    large_.let_in(pattern.source);
    return false;
  }
  *info = info_of(*message);
  return true;
}

Message* TaggedContext::claim(const Pattern& pattern, MessageInfo* info) {
  return probe(pattern, info) ? state_.matcher.claim(pattern) : nullptr;
}

int TaggedContext::receive_claimed(Message& message, void* buffer, uint64_t capacity_bytes,
                                   RecvRequest& request) {
  if (const int rc = state_.matcher.release(message); rc != 0) {
    return rc;
  }
  request.capacity_bytes = capacity_bytes;
  request.buffer = static_cast<uint8_t*>(buffer);
  return take_matched(static_cast<Unexpected&>(message), request);
}

int TaggedContext::flush(uint32_t timeout_ms) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const uint64_t end_ns = base::now_ns() + timeout_ms * kNsPerMs;
  while (outbox_.waits() || (large_.busy() && large_.moves())) {
    if (base::now_ns() > end_ns) {
      return -ETIMEDOUT;
    }
    progress();
  }
  const uint64_t now_ns = base::now_ns();
  return state_.port.flush(
      static_cast<uint32_t>(now_ns < end_ns ? (end_ns - now_ns) / kNsPerMs : 0));
}

}  // namespace rio::tag
