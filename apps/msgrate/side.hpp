/// @file
/// One of the two processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/msgrate/options.hpp"
#include "lib/skifch/skifch.h"

namespace rio::msgrate {

struct CloseChannel {
  void operator()(SkifCh* channel) const { SkifCh_Close(channel); }
};

/// A channel and who is at its other end. Functions return 0 or -errno; what failed is on stderr.
class Side {
 public:
  [[nodiscard]] static int open(const std::string& card, uint32_t peer, std::unique_ptr<Side>* out);

  /// Both sides are there: each has heard of the other.
  [[nodiscard]] int barrier();
  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count);
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count);
  /// @param first this side sends first.
  [[nodiscard]] int ping_pong(bool first, uint32_t size_bytes, uint32_t count);

 private:
  explicit Side(uint32_t peer);
  [[nodiscard]] int send_one(uint32_t size_bytes);
  [[nodiscard]] int receive_one(uint32_t size_bytes);

  std::unique_ptr<SkifCh, CloseChannel> channel_;
  netaddr_t peer_;
  std::vector<uint8_t> bytes_;
};

}  // namespace rio::msgrate
