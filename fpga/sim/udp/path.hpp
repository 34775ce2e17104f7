/// @file
/// What this machine knows of the way from a member to another one, before anything is sent.
#pragma once

#include <cstdint>
#include <string>

#include "fpga/sim/udp/address.hpp"

namespace rio::sim::udp {

/// A way from one address to another.
struct Path {
  int error = 0;         ///< 0, or -errno: the kernel does not send from there to there
  uint32_t mtu = 0;      ///< bytes of the longest packet, IP's and UDP's headers included
  uint32_t headers = 0;  ///< bytes of these headers

  /// The longest datagram, as far as this machine knows: kDatagramMin to kDatagramMax.
  [[nodiscard]] uint32_t datagram_bytes() const;
  /// Whether the shortest datagram that the wire needs fits in.
  [[nodiscard]] bool is_wide() const;
};

/// Asks the kernel. Any thread. @param from an address of this machine; its port does not matter.
[[nodiscard]] Path path_between(const Address& from, const Address& to);

/// Holds a member's own address against a peer's.
struct Verdict {
  bool possible = true;  ///< false: the two can never talk
  std::string text;      ///< what is wrong, and what to do; empty: nothing
};
/// Any thread. @param path between the two.
[[nodiscard]] Verdict judge(const Address& own, const Address& peer, const Path& path);

}  // namespace rio::sim::udp
