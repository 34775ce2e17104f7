/// @file
/// A channel of SkifCh.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/msgrate/side.hpp"
#include "lib/skifch/skifch.h"

namespace rio::msgrate {

struct CloseChannel {
  void operator()(SkifCh* channel) const { SkifCh_Close(channel); }
};

/// A channel, and the address of its peer.
class SkifChSide final : public SideOf<SkifChSide> {
 public:
  [[nodiscard]] static int open(const std::string& card, uint32_t peer, std::unique_ptr<Side>* out);

 private:
  friend SideOf;
  explicit SkifChSide(uint32_t peer);
  [[nodiscard]] int send_one(uint32_t size_bytes);
  [[nodiscard]] int receive_one(uint32_t size_bytes);
  [[nodiscard]] ssize_t wait_for_one(iovec* cont, int* count);
  [[nodiscard]] bool peer_is_gone();

  std::unique_ptr<SkifCh, CloseChannel> channel_;
  netaddr_t peer_;
  std::vector<uint8_t> bytes_;
};

}  // namespace rio::msgrate
