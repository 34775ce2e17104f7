#include "lib/tag/unexpected.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace rio::tag {

[[gnu::noinline]] Unexpected* UnexpectedStore::keep_arrived(Address source,
                                                            const FirstHeader& header,
                                                            bool has_immediate,
                                                            uint32_t skip_bytes) {
  Unexpected* const message = get();
  if (message == nullptr) {
    return nullptr;
  }
  if (!add_part(*message, skip_bytes)) {
    put(message);
    return nullptr;
  }
  keep(*message, {source, header.bits, header.total_bytes, {header.immediate, has_immediate}});
  return message;
}

bool UnexpectedStore::add_part(Unexpected& message, uint32_t skip_bytes) {
  Part* const part = parts_.get();
  if (part == nullptr) {
    return false;
  }
  part->delivery = state_.context->take_oldest();
  part->skip_bytes = skip_bytes;
  (message.last != nullptr ? message.last->next : message.first) = part;
  message.last = part;
  return true;
}

void UnexpectedStore::drop(Unexpected& message) {
  for (Part* part = message.first; part != nullptr;) {
    Part* const next = part->next;
    state_.context->give_back(part->delivery);
    parts_.put(part);
    part = next;
  }
  if (message.sender != nullptr) {
    end_sender(message, -ECANCELED);
  }
  if (message.request != nullptr) {
    state_.context->refuse_large(message.request);
  }
  put(&message);
}

Unexpected* UnexpectedStore::take_whole() {
  Message* message = state_.matcher.messages().waiting().first();
  for (; message != nullptr; message = MessageQueue::List::next(*message)) {
    auto& unexpected = static_cast<Unexpected&>(*message);
    if (unexpected.whole || unexpected.request != nullptr) {
      static_cast<void>(state_.matcher.discard(unexpected));
      return &unexpected;
    }
  }
  return nullptr;
}

void UnexpectedStore::drop_whole() {
  while (Unexpected* const message = take_whole()) {
    drop(*message);
  }
}

void UnexpectedStore::drop_all() {
  const auto each = [this](Message& message) { discard(static_cast<Unexpected&>(message)); };
  state_.matcher.messages().waiting().for_each(each);
  state_.matcher.messages().claimed().for_each(each);
}

int UnexpectedStore::send_self(SendRequest& request) {
  const Address self = state_.peers.self();
  if (Receive* const receive = state_.matcher.arrive(self, request.bits); receive != nullptr) {
    auto& to = static_cast<RecvRequest&>(*receive);
    describe(to, self, request.bits, request.immediate, request.length_bytes);
    place(to, 0, request.data, request.length_bytes);
    state_.completions.finish(to, truncation(to));
    request.stage = Stage::kIdle;
    return 1;
  }
  return keep_self(request);
}

/// No receive is posted. A short message is copied, so that a program that sends first and then
/// receives goes on; a long one, or one that has to be matched, stays where it is.
int UnexpectedStore::keep_self(SendRequest& request) {
  Unexpected* const message = get();
  const bool copies = !request.sync && request.length_bytes <= state_.config.eager_bytes;
  const bool has_bytes = copies && request.length_bytes != 0;
  if (message != nullptr && has_bytes) {
    message->copy.reset(new (std::nothrow) uint8_t[request.length_bytes]);
  }
  if (message == nullptr || (has_bytes && message->copy == nullptr)) {
    if (message != nullptr) {
      put(message);
    }
    request.stage = Stage::kIdle;
    return -ENOMEM;
  }
  message->whole = true;
  if (has_bytes) {
    std::memcpy(message->copy.get(), request.data, request.length_bytes);
  }
  if (copies) {
    request.stage = Stage::kIdle;
  } else {
    message->sender = &request;
    request.kept = message;
    request.stage = Stage::kMoving;
    senders_.append(request);
  }
  keep(*message, {state_.peers.self(), request.bits, request.length_bytes, request.immediate});
  return copies ? 1 : 0;
}

void UnexpectedStore::take_self(Unexpected& message, const RecvRequest& request) {
  const bool stayed = message.sender != nullptr;
  place(request, 0, stayed ? message.sender->data : message.copy.get(), message.length_bytes);
  if (stayed) {
    end_sender(message, 0);
  }
}

void UnexpectedStore::end_sender(Unexpected& message, int status) {
  SendRequest& sender = *std::exchange(message.sender, nullptr);
  sender.kept = nullptr;
  senders_.remove(sender);
  message.status = status;
  state_.completions.finish(sender, status);
}

void UnexpectedStore::fail_senders(int error) {
  while (Request* const sender = senders_.first()) {
    end_sender(*static_cast<SendRequest&>(*sender).kept, error);
  }
}

}  // namespace rio::tag
