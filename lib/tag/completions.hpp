/// @file
/// Sends and receives that have ended, and what a receive is told of its message.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "lib/msg/copy.hpp"
#include "lib/tag/receive_queue.hpp"
#include "lib/tag/request.hpp"

namespace rio::tag {

using Requests = Fifo<Request, &Request::by_age>;

/// End a request. @param done takes it.
inline void finish(Request& request, int status, Requests* done) {
  request.status = status;
  request.stage = Stage::kDone;
  done->append(request);
}

/// Requests that have ended, the earliest first, until the caller takes them. One thread.
class Completions {
 public:
  void finish(Request& request, int status) { tag::finish(request, status, &done_); }
  /// Append what finish() has gathered elsewhere.
  void append_all(Requests& done) { done_.append_all(done); }
  [[nodiscard]] Requests* list() { return &done_; }

  [[nodiscard]] bool empty() const { return done_.first() == nullptr; }
  /// Hot. The earliest, which is the caller's then. @return null: there is none.
  [[nodiscard]] Request* next() {
    Request* const request = done_.pop();
    if (request != nullptr) {
      request->stage = Stage::kIdle;
    }
    return request;
  }
  /// Whether a request has ended; if so it is the caller's.
  [[nodiscard]] bool take(Request& request) {
    if (request.stage != Stage::kDone) {
      return false;
    }
    done_.remove(request);
    request.stage = Stage::kIdle;
    return true;
  }

  /// End the posted receives that `wanted(const Receive&)`.
  template <class Wanted>
  void fail(ReceiveQueue& receives, Wanted&& wanted, int error) {
    receives.cancel_if(wanted).for_each(
        [&](Receive& receive) { finish(static_cast<RecvRequest&>(receive), error); });
  }

 private:
  Requests done_;
};

/// Status of a receive whose message has arrived.
[[nodiscard]] inline int truncation(const RecvRequest& request) {
  return request.length_bytes > request.capacity_bytes ? -EMSGSIZE : 0;
}

/// Hot. Copy bytes of a message that begin at `at`, as far as the buffer goes.
inline void place(const RecvRequest& request, uint64_t at, const uint8_t* bytes, uint64_t count) {
  if (at >= request.capacity_bytes) [[unlikely]] {
    return;
  }
  const uint64_t fits = std::min(count, request.capacity_bytes - at);
  msg::copy_any(request.buffer + at, bytes, fits, bytes);
}

/// Tell a receive which message it has matched.
inline void describe(RecvRequest& request, Address source, uint64_t bits, Immediate immediate,
                     uint64_t length_bytes) {
  request.length_bytes = length_bytes;
  request.message_bits = bits;
  request.immediate = immediate;
  request.from = source;
}

}  // namespace rio::tag
