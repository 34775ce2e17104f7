#include "lib/tag/long_messages.hpp"

#include <algorithm>

namespace rio::tag {

using msg::Kind;

int LongMessages::create(msg::MessagePort& port, uint16_t context,
                         std::unique_ptr<LongMessages>* out) {
  TaggedConfig config;
  const auto [always, read, alone] = port.copied_bytes();
  config.eager_bytes = std::max<uint64_t>(always, msg::kPartBytesMax);
  config.read_bytes = config.eager_bytes;  // a sender of a shorter message need not wait
  config.lone_bytes = alone;
  return make(port, context, config, out);
}

int LongMessages::accept(uint64_t length_bytes_max) {
  store_.accept(length_bytes_max);
  return length_bytes_max != 0 ? state_.context->accept_large(false) : 0;
}

const msg::Route* LongMessages::route(Address to) {
  const Peer* const peer = state_.peers.get(to);
  return peer != nullptr ? &peer->route : nullptr;
}

bool LongMessages::has_to_send(Address to) {
  const Peer* const peer = outbox_.waits() ? state_.peers.known(to) : nullptr;
  if (peer == nullptr || !peer->has_to_send()) {
    return false;
  }
  attend();
  return peer->has_to_send();
}

/// Process the inbox until there is a message to show. Nothing behind a shown long message is
/// processed before the caller has taken that.
bool LongMessages::look_further() {
  const msg::Inbox& inbox = state_.context->inbox();
  while (shown_ == nullptr && !inbox.empty()) {
    const msg::Origin origin = inbox.origin(0);
    const Kind kind = msg::kind_of(inbox.at(0));
    sessions_.meet(origin);
    if (kind == Kind::kData && !intake_.has_incoming(origin)) {
      return true;
    }
    if (has_immediate(kind)) {
      intake_.cut_off(origin, "a message with immediate data, where none has any");
      continue;
    }
    intake_.arrive(inbox.at(0), origin);
    shown_ = store_.take_whole();
  }
  return shown_ != nullptr;
}

int LongMessages::receive(Unexpected& message, void* buffer, uint64_t capacity,
                          RecvRequest& request) {
  request.capacity_bytes = capacity;
  request.buffer = static_cast<uint8_t*>(buffer);
  request.status = 0;
  const bool copies = message.request == nullptr;
  const int rc = take(message, request);
  state_.port.count_copied(copies ? std::min(capacity, request.length_bytes) : 0);
  return rc;
}

void LongMessages::attend() {
  if (sessions_.changed()) {
    sessions_.look();
  }
  if (outbox_.waits()) {
    outbox_.send_waiting();
  }
  if (large_.busy()) {
    large_.finish();
  }
}

}  // namespace rio::tag
