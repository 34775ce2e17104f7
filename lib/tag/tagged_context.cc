#include "lib/tag/tagged_context.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "lib/msg/close_large.hpp"

namespace rio::tag {
namespace {

[[nodiscard]] MessageInfo info_of(const Message& message) {
  return {message.source, message.bits, message.length_bytes,
          static_cast<const Unexpected&>(message).immediate};
}

}  // namespace

TaggedContext::TaggedContext(msg::MessagePort& port, std::unique_ptr<msg::MessageContext> context,
                             uint64_t eager_bytes, const TaggedConfig& config)
    : port_(port),
      context_(std::move(context)),
      eager_bytes_(eager_bytes),
      peers_(port, context_->id()),
      store_(*context_, matcher_, completions_, stats_),
      self_messages_(peers_, matcher_, completions_, store_, eager_bytes),
      large_(*context_, matcher_, completions_, peers_, store_, stats_, eager_bytes),
      outbox_(port, {context_->id(), eager_bytes, config.new_peer_ms, config.send_again},
              completions_, peers_, large_, stats_),
      intake_(port, *context_, matcher_, completions_, peers_, store_, large_, stats_, sessions_),
      sessions_(port, *context_, matcher_, completions_, peers_, store_, intake_, outbox_) {
  context_->on_session_end([this] { outbox_.end_direct(); });
}

int TaggedContext::create(msg::MessagePort& port, uint16_t context, const TaggedConfig& config,
                          std::unique_ptr<TaggedContext>* out) {
  HashSeed seed;
  std::unique_ptr<msg::MessageContext> made;
  int rc = HashSeed::draw(&seed);
  rc = rc != 0 ? rc : msg::MessageContext::create(port, context, &made);
  rc = rc != 0 ? rc : made->accept_large();
  if (rc != 0) {
    return rc;
  }
  const uint64_t eager = config.eager_bytes != 0 ? config.eager_bytes : port.profile().eager_bytes;
  std::unique_ptr<TaggedContext> endpoint(new (std::nothrow)
                                              TaggedContext(port, std::move(made), eager, config));
  if (endpoint == nullptr) {
    return -ENOMEM;
  }
  if (rc = endpoint->matcher_.create(seed, config.matcher); rc != 0) {
    return rc;
  }
  *out = std::move(endpoint);
  return 0;
}

TaggedContext::~TaggedContext() {
  sessions_.fail_all(-ECANCELED);
  const bool ended = large_.leave();
  store_.drop_all();
  if (!ended) {
    msg::leave_to_port(std::move(context_));
  }
}

/// A receive has matched a message that was unexpected.
int TaggedContext::take(Unexpected& message, RecvRequest& request) {
  describe(request, message.source, message.bits, message.immediate, message.length_bytes);
  if (message.request != nullptr) {
    msg::Request* const from = std::exchange(message.request, nullptr);
    store_.drop(message);
    if (!large_.receive(from, request)) {
      request.stage = Stage::kIdle;
      request.status = -ENOMEM;
      return 1;
    }
    return 0;
  }
  if (message.sender != nullptr || message.copy != nullptr) {
    self_messages_.take(message, request);
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
    Intake::redirect(*peers_.get(message.source), request);
  }
  store_.drop(message);
  if (!whole && status == 0) {
    return 0;
  }
  request.stage = Stage::kIdle;
  request.status = status != 0 ? status : truncation(request);
  return 1;
}

int TaggedContext::send_slow(Address to, uint64_t bits, Immediate immediate, const void* data,
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
  if (to != self()) {
    return outbox_.send(request, sessions_);
  }
  if (port_.error() != 0) {
    request.stage = Stage::kIdle;
    return port_.error();
  }
  return self_messages_.send(request);
}

bool TaggedContext::probe(const Pattern& pattern, MessageInfo* info) {
  progress();
  const Message* const message = matcher_.probe(pattern);
  if (message == nullptr) {
    large_.let_in(pattern.source);
    return false;
  }
  *info = info_of(*message);
  return true;
}

Message* TaggedContext::claim(const Pattern& pattern, MessageInfo* info) {
  progress();
  Message* const message = matcher_.claim(pattern);
  if (message == nullptr) {
    large_.let_in(pattern.source);
    return nullptr;
  }
  *info = info_of(*message);
  return message;
}

int TaggedContext::receive_claimed(Message& message, void* buffer, uint64_t capacity_bytes,
                                   RecvRequest& request) {
  if (const int rc = matcher_.release(message); rc != 0) {
    return rc;
  }
  request.capacity_bytes = capacity_bytes;
  request.buffer = static_cast<uint8_t*>(buffer);
  return take(static_cast<Unexpected&>(message), request);
}

int TaggedContext::cancel(RecvRequest& request) {
  if (request.stage == Stage::kMoving) {
    if (request.large == nullptr) {
      return -EALREADY;
    }
    context_->cancel(*request.large);
    return 0;
  }
  if (request.stage != Stage::kWaiting || matcher_.cancel(request) != 0) {
    return -ENOENT;
  }
  large_.revoke(request);
  completions_.finish(request, -ECANCELED);
  return 0;
}

int TaggedContext::cancel(SendRequest& request) {
  if (request.stage == Stage::kMoving && request.large != nullptr) {
    context_->cancel(*request.large);
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

int TaggedContext::flush(uint32_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (outbox_.waits() || (large_.busy() && large_.moves())) {
    if (Clock::now() > end) {
      return -ETIMEDOUT;
    }
    progress();
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return port_.flush(static_cast<uint32_t>(std::max<int64_t>(left.count(), 0)));
}

}  // namespace rio::tag
