#include "lib/tag/endpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "lib/msg/close_large.hpp"

namespace rio::tag {
namespace {

/// Nothing can be sent there.
msg::Outflow full;

[[nodiscard]] MessageInfo info_of(const Message& message) {
  return {message.source, message.bits, message.length_bytes,
          static_cast<const Unexpected&>(message).immediate};
}

}  // namespace

Endpoint::Direct Endpoint::nobody() {
  return {kAnySource, {nullptr, &full, nullptr, 0}};
}

int Endpoint::create(msg::Port& port, uint16_t context, const EndpointConfig& config,
                     std::unique_ptr<Endpoint>* out) {
  const uint64_t eager = config.eager_bytes != 0 ? config.eager_bytes : port.profile().eager_bytes;
  std::unique_ptr<Endpoint> endpoint(new (std::nothrow) Endpoint(port, eager, config));
  if (endpoint == nullptr) {
    return -ENOMEM;
  }
  HashSeed seed;
  int rc = HashSeed::draw(&seed);
  rc = rc != 0 ? rc : endpoint->matcher_.create(seed, config.matcher);
  rc = rc != 0 ? rc : msg::Context::create(port, context, &endpoint->context_);
  rc = rc != 0 ? rc : endpoint->context_->accept_large();
  if (rc != 0) {
    return rc;
  }
  endpoint->context_->on_session_end([self = endpoint.get()] { self->direct_ = nobody(); });
  endpoint->sessions_ended_ = port.sessions_ended();
  for (uint32_t i = 0; i < port.link_count(); ++i) {
    endpoint->session_of(port.link_at(i)) = port.link_at(i).session;
  }
  *out = std::move(endpoint);
  return 0;
}

Endpoint::~Endpoint() {
  if (context_ == nullptr) {
    return;
  }
  fail_all(-ECANCELED);
  const bool ended = leave_large();
  while (Message* const message = matcher_.messages().first()) {
    static_cast<void>(matcher_.discard(*message));
    drop(static_cast<Unexpected&>(*message));
  }
  while (Message* const message = matcher_.messages().first_claimed()) {
    static_cast<void>(matcher_.discard(*message));
    drop(static_cast<Unexpected&>(*message));
  }
  if (!ended) {
    msg::leave_to_port(std::move(context_));
  }
}

/// Made if need be. @return null: there is no such address, or no memory.
Peer* Endpoint::peer(Address address) {
  const auto known = peers_.find(address);
  if (known != peers_.end()) {
    return known->second.get();
  }
  auto made = std::make_unique<Peer>(port_);
  made->address = address;
  if (address == kAnySource || port_.route(dest_id_of(address), context_of(address), context_->id(),
                                           msg::Kind::kData, &made->route) != 0) {
    return nullptr;
  }
  made->session = session_of(*made->route.link);
  Peer* const peer = made.get();
  peers_.emplace(address, std::move(made));
  return peer;
}

/// @return null: this endpoint's own address, or peer() returns null.
const msg::Link* Endpoint::link_of(Address address) {
  const Peer* const known = address != self() ? peer(address) : nullptr;
  return known != nullptr ? known->route.link : nullptr;
}

/// A receive has matched what came before it.
int Endpoint::take(Unexpected& message, RecvRequest& request) {
  request.message_bits = message.bits;
  request.immediate = message.immediate;
  request.length_bytes = message.length_bytes;
  request.from = message.source;
  if (message.request != nullptr) {
    msg::Request* const from = std::exchange(message.request, nullptr);
    drop(message);
    if (!receive_large(from, request)) {
      request.stage = Stage::kIdle;
      request.status = -ENOMEM;
      return 1;
    }
    return 0;
  }
  if (message.sender != nullptr || message.copy != nullptr) {
    take_self(message, request);
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
    Incoming& incoming = peer(message.source)->incoming;
    incoming.kept = nullptr;
    incoming.to = &request;
    request.stage = Stage::kMoving;
  }
  drop(message);
  if (!whole && status == 0) {
    return 0;
  }
  request.stage = Stage::kIdle;
  request.status = status != 0 ? status : truncation(request);
  return 1;
}

/// Of a message that is in no queue.
void Endpoint::drop(Unexpected& message) {
  for (Part* part = message.first; part != nullptr;) {
    Part* const next = part->next;
    context_->give_back(part->delivery);
    parts_.put(part);
    part = next;
  }
  if (message.sender != nullptr) {
    end_self(message, -ECANCELED);
  }
  if (message.request != nullptr) {
    context_->refuse_large(message.request);
  }
  unexpected_.put(&message);
}

void Endpoint::drop_unexpected() {
  for (Message* message = matcher_.messages().first(); message != nullptr;) {
    Message* const next = MessageQueue::next(*message);
    auto& unexpected = static_cast<Unexpected&>(*message);
    if (unexpected.whole || unexpected.request != nullptr) {
      static_cast<void>(matcher_.discard(unexpected));
      drop(unexpected);
    }
    message = next;
  }
}

bool Endpoint::probe(const Pattern& pattern, MessageInfo* info) {
  progress();
  const Message* const message = matcher_.probe(pattern);
  if (message == nullptr) {
    let_in(pattern.source);
    return false;
  }
  *info = info_of(*message);
  return true;
}

Message* Endpoint::claim(const Pattern& pattern, MessageInfo* info) {
  progress();
  Message* const message = matcher_.claim(pattern);
  if (message == nullptr) {
    let_in(pattern.source);
    return nullptr;
  }
  *info = info_of(*message);
  return message;
}

int Endpoint::receive_claimed(Message& message, void* buffer, uint64_t capacity_bytes,
                              RecvRequest& request) {
  if (const int rc = matcher_.release(message); rc != 0) {
    return rc;
  }
  request.capacity_bytes = capacity_bytes;
  request.buffer = static_cast<uint8_t*>(buffer);
  return take(static_cast<Unexpected&>(message), request);
}

int Endpoint::cancel(RecvRequest& request) {
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
  revoke(request);
  finish(request, -ECANCELED);
  return 0;
}

int Endpoint::cancel(SendRequest& request) {
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
  peer(request.to)->queue.remove(request);
  finish(request, -ECANCELED);
  return 0;
}

int Endpoint::flush(uint32_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!senders_.empty() || (cold_ != 0 && moves_large())) {
    if (Clock::now() > end) {
      return -ETIMEDOUT;
    }
    progress();
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return port_.flush(static_cast<uint32_t>(std::max<int64_t>(left.count(), 0)));
}

}  // namespace rio::tag
