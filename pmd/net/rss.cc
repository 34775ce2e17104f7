#include "pmd/net/rss.hpp"

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_thash.h>

#include <algorithm>
#include <cstring>

namespace rio::pmd {
namespace {

// Microsoft's key, the common default.
constexpr std::array<uint8_t, Rss::kKeyBytes> kDefaultKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

constexpr uint64_t kIpv4Types =
    RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER;
constexpr uint64_t kIpv6Types =
    RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER;
constexpr uint64_t kTcpTypes = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP;
constexpr uint64_t kUdpTypes = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;

/// Reads a header of a frame, if the frame holds all of it.
template <class Header>
[[nodiscard]] bool read(const uint8_t* frame, uint32_t length_bytes, uint32_t at, Header* out) {
  if (at + sizeof(Header) > length_bytes) {
    return false;
  }
  std::memcpy(out, frame + at, sizeof(Header));
  return true;
}

}  // namespace

const uint64_t Rss::kTypes = kIpv4Types | kIpv6Types | kTcpTypes | kUdpTypes;

Rss::Rss() {
  set_key(kDefaultKey.data());
}

void Rss::set_key(const uint8_t* key) {
  std::copy_n(key, kKeyBytes, key_.data());
  std::array<uint32_t, kKeyBytes / 4> plain;
  std::memcpy(plain.data(), key, kKeyBytes);
  rte_convert_rss_key(plain.data(), words_.data(), kKeyBytes);
}

void Rss::spread(uint16_t queues) {
  for (uint32_t i = 0; i < kTable; ++i) {
    table[i] = static_cast<uint16_t>(i % queues);
  }
}

uint32_t Rss::hash(const uint8_t* frame, uint32_t length_bytes) const {
  uint32_t at = RTE_ETHER_HDR_LEN;
  rte_be16_t type = 0;
  bool whole = types != 0 && read(frame, length_bytes, 12, &type);
  for (uint32_t tags = 0; whole && tags < 2 &&
                          (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) ||
                           type == rte_cpu_to_be_16(RTE_ETHER_TYPE_QINQ));
       ++tags) {
    whole = read(frame, length_bytes, at + 2, &type);
    at += RTE_VLAN_HLEN;
  }
  std::array<uint32_t, 9> words;  // in host order: addresses, then ports
  uint32_t count = 0;
  uint8_t protocol = 0;
  bool fragment = false;
  uint64_t ip_types = 0;
  rte_ipv4_hdr ip;
  rte_ipv6_hdr ip6;
  if (whole && type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
      read(frame, length_bytes, at, &ip)) {
    words[count++] = rte_be_to_cpu_32(ip.src_addr);
    words[count++] = rte_be_to_cpu_32(ip.dst_addr);
    protocol = ip.next_proto_id;
    constexpr uint16_t kFragment = RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK;
    fragment = (ip.fragment_offset & rte_cpu_to_be_16(kFragment)) != 0;
    ip_types = kIpv4Types;
    at += (ip.version_ihl & RTE_IPV4_HDR_IHL_MASK) * RTE_IPV4_IHL_MULTIPLIER;
  } else if (whole && type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) &&
             read(frame, length_bytes, at, &ip6)) {
    std::array<rte_be32_t, 8> addresses;
    std::memcpy(addresses.data(), frame + at + offsetof(rte_ipv6_hdr, src_addr), 32);
    for (const rte_be32_t word : addresses) {
      words[count++] = rte_be_to_cpu_32(word);
    }
    protocol = ip6.proto;
    ip_types = kIpv6Types;
    at += sizeof(ip6);
  } else {
    return 0;
  }
  const uint64_t ports_types = protocol == IPPROTO_TCP   ? kTcpTypes
                               : protocol == IPPROTO_UDP ? kUdpTypes
                                                         : 0;
  rte_be32_t ports = 0;
  if (!fragment && (types & ports_types) != 0 && read(frame, length_bytes, at, &ports)) {
    words[count++] = rte_be_to_cpu_32(ports);
  } else if ((types & ip_types) == 0) {
    return 0;
  }
  return rte_softrss_be(words.data(), count, reinterpret_cast<const uint8_t*>(words_.data()));
}

}  // namespace rio::pmd
