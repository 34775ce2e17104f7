#include "lib/tag/engine.hpp"

#include <cerrno>
#include <utility>

namespace rio::tag {

Engine::Engine(msg::MessagePort& port, std::unique_ptr<msg::MessageContext> context, bool tagged,
               const TaggedConfig& config)
    : state_{port, std::move(context), tagged, config} {
  state_.context->on_session_end([this] { outbox_.end_direct(); });
}

Engine::~Engine() {
  sessions_.fail_all(-ECANCELED);
  const bool ended = large_.leave();
  store_.drop_all();
  if (!ended) {
    // The transfers still report to the context when they end, so the port keeps it.
    state_.context->close();
    state_.port.take_over(std::move(state_.context));
  }
}

int Engine::send_filled(Address to, uint64_t bits, Immediate immediate, const void* data,
                        uint64_t length_bytes, bool sync, SendRequest& request) {
  if (length_bytes > kLengthMax || (data == nullptr && length_bytes != 0)) {
    return -EINVAL;
  }
  request.status = 0;
  request.bits = bits;
  request.immediate = immediate;
  request.data = static_cast<const uint8_t*>(data);
  request.length_bytes = length_bytes;
  request.sent_bytes = 0;
  request.to = to;
  request.sync = sync;
  request.large = nullptr;
  request.stage = Stage::kWaiting;
  if (!state_.tagged || to != self()) {
    return outbox_.send(request, sessions_);
  }
  if (state_.port.error() != 0) {
    request.stage = Stage::kIdle;
    return state_.port.error();
  }
  return store_.send_self(request);
}

int Engine::take(Unexpected& message, RecvRequest& request) {
  describe(request, message.source, message.bits, message.immediate, message.length_bytes);
  if (message.request != nullptr) {
    if (!large_.receive(message.request, request)) {
      request.stage = Stage::kIdle;
      return -ENOMEM;
    }
    message.request = nullptr;
    store_.drop(message);
    return 0;
  }
  if (message.sender != nullptr || message.copy != nullptr) {
    store_.take_self(message, request);
  }
  uint64_t at = 0;
  for (const Part* part = message.first; part != nullptr; part = part->next) {
    const iovec& bytes = part->delivery.bytes;
    const uint64_t count = bytes.iov_len - part->skip_bytes;
    place(request, at, static_cast<const uint8_t*>(bytes.iov_base) + part->skip_bytes, count);
    at += count;
  }
  const int status = message.status;
  const bool whole = message.whole;
  if (!whole && status == 0) {
    Intake::redirect(*state_.peers.known(message.source), request);
  }
  store_.drop(message);
  if (!whole && status == 0) {
    return 0;
  }
  request.stage = Stage::kIdle;
  request.status = status != 0 ? status : truncation(request);
  return 1;
}

int Engine::cancel(RecvRequest& request) {
  if (request.stage == Stage::kMoving) {
    if (request.large == nullptr) {
      return -EALREADY;
    }
    state_.context->cancel(*request.large);
    return 0;
  }
  if (request.stage != Stage::kWaiting || state_.matcher.cancel(request) != 0) {
    return -ENOENT;
  }
  large_.revoke(request);
  state_.completions.finish(request, -ECANCELED);
  return 0;
}

int Engine::cancel(SendRequest& request) {
  if (request.stage == Stage::kMoving && request.large != nullptr) {
    state_.context->cancel(*request.large);
    return 0;
  }
  if (request.stage == Stage::kMoving) {
    return -EALREADY;
  }
  if (request.stage != Stage::kWaiting) {
    return -ENOENT;
  }
  outbox_.cancel(request);
  return 0;
}

}  // namespace rio::tag
