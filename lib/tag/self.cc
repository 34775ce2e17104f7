// What an endpoint sends to itself: no card takes part, which need not be able to hear itself.
#include <cerrno>
#include <cstring>
#include <new>

#include "lib/tag/endpoint.hpp"

namespace rio::tag {

/// @return as send().
int Endpoint::send_self(SendRequest& request) {
  if (port_.error() != 0) {
    request.stage = Stage::kIdle;
    return port_.error();
  }
  if (Receive* const receive = matcher_.arrive(self(), request.bits); receive != nullptr) {
    auto& to = static_cast<RecvRequest&>(*receive);
    to.message_bits = request.bits;
    to.immediate = request.immediate;
    to.length_bytes = request.length_bytes;
    to.from = self();
    place(to, 0, request.data, request.length_bytes);
    finish(to, truncation(to));
    request.stage = Stage::kIdle;
    return 1;
  }
  return keep_self(request);
}

/// Nobody wants it yet. What is short is copied, so that who sends first and receives then goes on;
/// what is not, or has to be matched, stays where it is.
int Endpoint::keep_self(SendRequest& request) {
  Unexpected* const message = unexpected_.get();
  const bool copies = !request.sync && request.length_bytes <= eager_bytes_;
  if (message != nullptr && copies && request.length_bytes != 0) {
    message->copy.reset(new (std::nothrow) uint8_t[request.length_bytes]);
  }
  if (message == nullptr || (copies && request.length_bytes != 0 && message->copy == nullptr)) {
    if (message != nullptr) {
      unexpected_.put(message);
    }
    request.stage = Stage::kIdle;
    return -ENOMEM;
  }
  message->source = self();
  message->bits = request.bits;
  message->immediate = request.immediate;
  message->length_bytes = request.length_bytes;
  message->whole = true;
  if (copies) {
    if (request.length_bytes != 0) {
      std::memcpy(message->copy.get(), request.data, request.length_bytes);
    }
    request.stage = Stage::kIdle;
  } else {
    message->sender = &request;
    request.kept = message;
    request.stage = Stage::kMoving;
    self_sends_.append(request);
  }
  matcher_.keep(*message);
  ++stats_.unexpected;
  return copies ? 1 : 0;
}

/// A receive has matched one that is not a card's.
void Endpoint::take_self(Unexpected& message, const RecvRequest& request) {
  const bool stayed = message.sender != nullptr;
  place(request, 0, stayed ? message.sender->data : message.copy.get(), message.length_bytes);
  if (stayed) {
    end_self(message, 0);
  }
}

void Endpoint::end_self(Unexpected& message, int status) {
  SendRequest& sender = *std::exchange(message.sender, nullptr);
  sender.kept = nullptr;
  self_sends_.remove(sender);
  message.status = status;
  finish(sender, status);
}

/// What nobody has received will not be.
void Endpoint::fail_self(int error) {
  while (Request* const sender = self_sends_.first()) {
    end_self(*static_cast<SendRequest&>(*sender).kept, error);
  }
}

}  // namespace rio::tag
