/// @file
/// Tagged messages with one peer, for programs that measure them. One thread.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/tag/tagged_context.hpp"

namespace rio::apps {

/// Says it on stderr, with the program's name. @param error errno. @return -error.
int complain(const std::string& what, int error);

/// Ends a wait that takes too long.
class Patience {
 public:
  /// @param looks since the last call. @return false: it is at its end.
  [[nodiscard]] bool left(uint32_t looks = 1) {
    looks_ += looks;
    if (looks_ < kLooksPerClock) {
      return true;
    }
    looks_ = 0;
    return std::chrono::steady_clock::now() < end_;
  }

 private:
  static constexpr uint32_t kLooksPerClock = 1u << 16;
  static constexpr std::chrono::seconds kPatience{30};

  uint32_t looks_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kPatience;
};

/// A context of tagged messages, and the address of its peer, the context of the same number on
/// another card. Functions return 0 or -errno; what failed is on stderr.
class TagEnd {
 public:
  TagEnd() = default;
  /// Waits until all sends have arrived, for 5 s at most; not after a wait() that failed.
  ~TagEnd();
  TagEnd(const TagEnd&) = delete;
  TagEnd& operator=(const TagEnd&) = delete;

  /// @param port outlives the object. @return 0 or -errno; the caller reports it.
  [[nodiscard]] int open(msg::MessagePort& port, uint16_t context,
                         const tag::TaggedConfig& config) {
    context_ = context;
    return tag::TaggedContext::create(port, context, config, &endpoint_);
  }
  /// Call it before send() and receive(). @param dest_id of the peer's card.
  void set_peer(uint32_t dest_id) { peer_ = tag::address(dest_id, context_); }

  [[nodiscard]] int send(uint64_t bits, const void* data, uint64_t size_bytes,
                         tag::SendRequest& request) {
    return endpoint_->send(peer_, bits, data, size_bytes, request);
  }
  [[nodiscard]] int receive(uint64_t bits, void* data, uint64_t size_bytes,
                            tag::RecvRequest& request) {
    return endpoint_->receive({bits, 0, peer_}, data, size_bytes, request);
  }
  /// @param begun of send() or receive(). @return 0 when it is done, or why not.
  [[nodiscard]] int wait(int begun, tag::Request& request) {
    if (begun == 0 && !endpoint_->test(request)) {
      Patience patience;
      do {
        if (!patience.left()) {
          return complain_of_peer(ETIMEDOUT);
        }
        endpoint_->progress();
      } while (!endpoint_->test(request));
    }
    const int status = begun < 0 ? begun : request.status;
    return status == 0 ? 0 : complain_of_peer(-status);
  }

  /// @return as TaggedContext::flush(), -ENODEV if the card is gone; nothing is on stderr.
  [[nodiscard]] int flush(uint32_t timeout_ms) { return endpoint_->flush(timeout_ms); }

 private:
  int complain_of_peer(int error);

  std::unique_ptr<tag::TaggedContext> endpoint_;
  uint16_t context_ = 0;
  bool failed_ = false;  // requests may be under way whose memory goes first
  tag::Address peer_{};
};

/// Messages one after the other, of which some are always under way; all are in the same buffer, as
/// in the bandwidth tests of others. send_one() and receive_one() wait for theirs. Functions return
/// as those of TagEnd.
template <uint32_t kAhead>
class TagStream {
 public:
  /// @param end, bytes outlive the object.
  TagStream(TagEnd& end, uint8_t* bytes) : end_(end), bytes_(bytes) {}

  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count) {
    return stream(size_bytes, count, sends_);
  }
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count) {
    return stream(size_bytes, count, receives_);
  }
  [[nodiscard]] int send_one(uint32_t size_bytes) {
    return end_.wait(begin(size_bytes, sends_[0]), sends_[0]);
  }
  [[nodiscard]] int receive_one(uint32_t size_bytes) {
    return end_.wait(begin(size_bytes, receives_[0]), receives_[0]);
  }

 private:
  static constexpr uint64_t kBits = 1;

  [[nodiscard]] int begin(uint32_t size_bytes, tag::SendRequest& request) {
    return end_.send(kBits, bytes_, size_bytes, request);
  }
  [[nodiscard]] int begin(uint32_t size_bytes, tag::RecvRequest& request) {
    return end_.receive(kBits, bytes_, size_bytes, request);
  }
  template <class Request>
  [[nodiscard]] int stream(uint32_t size_bytes, uint32_t count,
                           std::array<Request, kAhead>& requests) {
    std::array<int, kAhead> begun;
    for (uint32_t i = 0; i < count + kAhead; ++i) {
      const uint32_t at = i % kAhead;
      // Wait for the requests of the last round, one after another.
      if (i >= kAhead && i - kAhead < count) {
        if (const int rc = end_.wait(begun[at], requests[at]); rc != 0) {
          return rc;
        }
      }
      if (i < count) {
        begun[at] = begin(size_bytes, requests[at]);
      }
    }
    return 0;
  }

  TagEnd& end_;
  uint8_t* bytes_;
  std::array<tag::SendRequest, kAhead> sends_;
  std::array<tag::RecvRequest, kAhead> receives_;
};

}  // namespace rio::apps
