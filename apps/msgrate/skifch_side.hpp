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
class SkifChSide : public Side {
 public:
  [[nodiscard]] static int open(const std::string& card, uint32_t peer, std::unique_ptr<Side>* out);

  [[nodiscard]] int barrier() override;
  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count) override;
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count) override;
  [[nodiscard]] int ping_pong(bool first, uint32_t size_bytes, uint32_t count) override;

 private:
  template <class Each>
  friend int take_turns(Each& side, bool first, uint32_t size_bytes, uint32_t count);
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
