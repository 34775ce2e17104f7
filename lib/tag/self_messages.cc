#include "lib/tag/self_messages.hpp"

#include <cerrno>
#include <cstring>
#include <new>

namespace rio::tag {

int SelfMessages::send(SendRequest& request) {
  const Address self = peers_.self();
  if (Receive* const receive = matcher_.arrive(self, request.bits); receive != nullptr) {
    auto& to = static_cast<RecvRequest&>(*receive);
    describe(to, self, request.bits, request.immediate, request.length_bytes);
    place(to, 0, request.data, request.length_bytes);
    completions_.finish(to, truncation(to));
    request.stage = Stage::kIdle;
    return 1;
  }
  return keep(request);
}

/// No receive is posted. A short message is copied, so that a program that sends first and then
/// receives goes on; a long one, or one that has to be matched, stays where it is.
int SelfMessages::keep(SendRequest& request) {
  Unexpected* const message = store_.get();
  const bool copies = !request.sync && request.length_bytes <= eager_bytes_;
  const bool has_bytes = copies && request.length_bytes != 0;
  if (message != nullptr && has_bytes) {
    message->copy.reset(new (std::nothrow) uint8_t[request.length_bytes]);
  }
  if (message == nullptr || (has_bytes && message->copy == nullptr)) {
    if (message != nullptr) {
      store_.put(message);
    }
    request.stage = Stage::kIdle;
    return -ENOMEM;
  }
  message->source = peers_.self();
  message->bits = request.bits;
  message->immediate = request.immediate;
  message->length_bytes = request.length_bytes;
  message->whole = true;
  if (has_bytes) {
    std::memcpy(message->copy.get(), request.data, request.length_bytes);
  }
  if (copies) {
    request.stage = Stage::kIdle;
  } else {
    store_.add_sender(request, *message);
  }
  store_.keep(*message);
  return copies ? 1 : 0;
}

void SelfMessages::take(Unexpected& message, const RecvRequest& request) {
  const bool stayed = message.sender != nullptr;
  place(request, 0, stayed ? message.sender->data : message.copy.get(), message.length_bytes);
  if (stayed) {
    store_.end_sender(message, 0);
  }
}

}  // namespace rio::tag
