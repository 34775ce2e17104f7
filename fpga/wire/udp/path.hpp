/// @file
/// This machine's knowledge of the path from a member to another, before anything is sent.
#pragma once

#include <cstdint>
#include <string>

#include "base/trouble.hpp"
#include "fpga/wire/udp/address.hpp"

namespace rio::wire::udp {

struct Path {
  int error = 0;              ///< 0, or -errno: the kernel cannot send from the one to the other
  uint32_t mtu = 0;           ///< bytes of the longest packet, IP's and UDP's headers included
  uint32_t headers = 0;       ///< bytes of these headers
  bool peer_is_here = false;  ///< the other address belongs to this machine, as far as it can tell
  base::Trouble lack = {};    ///< why this process cannot ask the kernel: `error` is its -errno

  /// The longest datagram, as far as this machine knows: kDatagramMin to kDatagramMax.
  [[nodiscard]] uint32_t datagram_bytes() const;
  /// Whether the shortest datagram that the wire needs fits.
  [[nodiscard]] bool is_wide() const;
};

/// Ask the kernel about a path. Any thread. @param from an address of this machine; its port is
/// ignored.
[[nodiscard]] Path path_between(const Address& from, const Address& to);

/// Result of comparing a member's own address with a peer's.
struct Verdict {
  bool possible = true;  ///< false: the two can never communicate
  std::string text;      ///< cause and remedy; empty: no objection
};
/// Compare the two. Any thread. @param path between them.
[[nodiscard]] Verdict judge(const Address& own, const Address& peer, const Path& path);

}  // namespace rio::wire::udp
