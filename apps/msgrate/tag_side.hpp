/// @file
/// Tagged messages.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "apps/msgrate/side.hpp"
#include "apps/msgrate/tag_end.hpp"

namespace rio::msgrate {

/// Some requests are always under way; all have the same
/// buffer, as in the bandwidth tests of others.
class TagSide : public Side<TagSide> {
 public:
  /// @param size_bytes of the longest message.
  TagSide(uint32_t peer, uint32_t size_bytes) : end_(peer, size_bytes), bytes_(end_.bytes()) {}
  [[nodiscard]] int open(const std::string& card) { return end_.open(card); }

  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count);
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count);

 private:
  friend Side;
  static constexpr uint32_t kAhead = 64;
  static constexpr uint64_t kBits = 1;

  [[nodiscard]] int begin(uint32_t size_bytes, tag::SendRequest& request) {
    return end_.send(kBits, bytes_, size_bytes, request);
  }
  [[nodiscard]] int begin(uint32_t size_bytes, tag::RecvRequest& request) {
    return end_.receive(kBits, bytes_, size_bytes, request);
  }
  template <class Request>
  [[nodiscard]] int stream(uint32_t size_bytes, uint32_t count,
                           std::array<Request, kAhead>& requests);
  [[nodiscard]] int send_one(uint32_t size_bytes) {
    return end_.wait(begin(size_bytes, sends_[0]), sends_[0]);
  }
  [[nodiscard]] int receive_one(uint32_t size_bytes) {
    return end_.wait(begin(size_bytes, receives_[0]), receives_[0]);
  }

  TagEnd end_;
  uint8_t* bytes_;
  std::array<tag::SendRequest, kAhead> sends_;
  std::array<tag::RecvRequest, kAhead> receives_;
};

}  // namespace rio::msgrate
