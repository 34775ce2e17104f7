#include "lib/tag/unexpected.hpp"

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
  message->source = source;
  message->bits = header.bits;
  message->immediate = {header.immediate, has_immediate};
  message->length_bytes = header.total_bytes;
  keep(*message);
  return message;
}

bool UnexpectedStore::add_part(Unexpected& message, uint32_t skip_bytes) {
  Part* const part = parts_.get();
  if (part == nullptr) {
    return false;
  }
  part->delivery = context_.take_oldest();
  part->skip_bytes = skip_bytes;
  (message.last != nullptr ? message.last->next : message.first) = part;
  message.last = part;
  return true;
}

void UnexpectedStore::drop(Unexpected& message) {
  for (Part* part = message.first; part != nullptr;) {
    Part* const next = part->next;
    context_.give_back(part->delivery);
    parts_.put(part);
    part = next;
  }
  if (message.sender != nullptr) {
    end_sender(message, -ECANCELED);
  }
  if (message.request != nullptr) {
    context_.refuse_large(message.request);
  }
  put(&message);
}

Unexpected* UnexpectedStore::take_whole() {
  Message* message = matcher_.messages().first();
  for (; message != nullptr; message = MessageQueue::next(*message)) {
    auto& unexpected = static_cast<Unexpected&>(*message);
    if (unexpected.whole || unexpected.request != nullptr) {
      static_cast<void>(matcher_.discard(unexpected));
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
  while (Message* const message = matcher_.messages().first()) {
    discard(static_cast<Unexpected&>(*message));
  }
  while (Message* const message = matcher_.messages().first_claimed()) {
    discard(static_cast<Unexpected&>(*message));
  }
}

void UnexpectedStore::add_sender(SendRequest& sender, Unexpected& message) {
  message.sender = &sender;
  sender.kept = &message;
  sender.stage = Stage::kMoving;
  senders_.append(sender);
}

void UnexpectedStore::end_sender(Unexpected& message, int status) {
  SendRequest& sender = *std::exchange(message.sender, nullptr);
  sender.kept = nullptr;
  senders_.remove(sender);
  message.status = status;
  completions_.finish(sender, status);
}

void UnexpectedStore::fail_senders(int error) {
  while (Request* const sender = senders_.first()) {
    end_sender(*static_cast<SendRequest&>(*sender).kept, error);
  }
}

}  // namespace rio::tag
