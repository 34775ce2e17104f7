/// @file
/// Tagged messages.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/msgrate/side.hpp"
#include "apps/msgrate/tag_end.hpp"

namespace rio::msgrate {

/// Some requests are always under way; all have the same
/// buffer, as in the bandwidth tests of others.
class TagSide : public Side {
 public:
  /// @param size_bytes of the longest message.
  [[nodiscard]] static int open(const std::string& card, uint32_t peer, uint32_t size_bytes,
                                std::unique_ptr<Side>* out);

  [[nodiscard]] int barrier() override;
  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count) override;
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count) override;
  [[nodiscard]] int ping_pong(bool first, uint32_t size_bytes, uint32_t count) override;

 private:
  template <class Each>
  friend int take_turns(Each& side, bool first, uint32_t size_bytes, uint32_t count);
  static constexpr uint32_t kAhead = 64;
  static constexpr uint64_t kBits = 1;

  TagSide(uint32_t peer, uint32_t size_bytes);
  [[nodiscard]] int send_one(uint32_t size_bytes);
  [[nodiscard]] int receive_one(uint32_t size_bytes);

  TagEnd end_;
  std::vector<uint8_t> memory_;
  uint8_t* bytes_;  // in it, on a page of its own, as those of others are
  std::array<tag::SendRequest, kAhead> sends_;
  std::array<tag::RecvRequest, kAhead> receives_;
};

}  // namespace rio::msgrate
