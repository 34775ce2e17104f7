#include "fpga/wire/udp/address.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/number.hpp"

namespace rio::wire::udp {
namespace {

[[nodiscard]] int look_up(const std::string& host, const char* port, int flags, Address* out) {
  addrinfo hints{};
  hints.ai_flags = flags | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (host.empty() || getaddrinfo(host.c_str(), port, &hints, &found) != 0 || found == nullptr) {
    return -EINVAL;
  }
  *out = Address(found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return out->family() == AF_UNSPEC ? -EINVAL : 0;
}

/// Rank of an interface's address for reaching this machine; 0: unusable.
[[nodiscard]] int worth(const ifaddrs& entry, const std::string& name) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0 ||
      (!name.empty() && name != entry.ifa_name)) {
    return 0;
  }
  const bool loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (entry.ifa_addr->sa_family == AF_INET) {
    return loopback ? 1 : 4;
  }
  if (entry.ifa_addr->sa_family != AF_INET6) {
    return 0;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
  const bool link_only = IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
  return loopback ? 0 : (link_only ? 2 : 3);
}

[[nodiscard]] int of_interface(const std::string& name, Address* out) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) {
    return -errno;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, &freeifaddrs);
  int best = 0;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (const int value = worth(*entry, name); value > best) {
      best = value;
      *out = Address(entry->ifa_addr, sizeof(sockaddr_in6));
    }
  }
  return best == 0 ? -EADDRNOTAVAIL : 0;
}

}  // namespace

Address::Address(const sockaddr* at, socklen_t bytes) {
  if (at->sa_family == AF_INET && bytes >= sizeof(at_.v4)) {
    std::memcpy(&at_.v4, at, sizeof(at_.v4));
  } else if (at->sa_family == AF_INET6 && bytes >= sizeof(at_.v6)) {
    std::memcpy(&at_.v6, at, sizeof(at_.v6));
    at_.v6.sin6_flowinfo = 0;
  }
}

int Address::parse(std::string_view text, bool resolve, Address* out) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon == std::string_view::npos ||
      !base::read_number(text.substr(colon + 1), 1, UINT16_MAX, &port)) {
    return -EINVAL;
  }
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return -EINVAL;
  }
  return look_up(std::string(host), std::to_string(port).c_str(), resolve ? 0 : AI_NUMERICHOST,
                 out);
}

int Address::local(const std::string& where, uint16_t port, Address* out) {
  Address found;
  if (look_up(where, nullptr, AI_NUMERICHOST, &found) != 0) {
    if (const int rc = of_interface(where, &found); rc != 0) {
      return rc;
    }
  }
  *out = found.with_port(port);
  return 0;
}

socklen_t Address::bytes() const {
  return family() == AF_INET ? sizeof(at_.v4) : sizeof(at_.v6);
}

uint16_t Address::port() const {
  return ntohs(family() == AF_INET ? at_.v4.sin_port : at_.v6.sin6_port);
}

Address Address::with_port(uint16_t port) const {
  Address out = *this;
  (family() == AF_INET ? out.at_.v4.sin_port : out.at_.v6.sin6_port) = htons(port);
  return out;
}

bool Address::is_loopback() const {
  return family() == AF_INET ? ntohl(at_.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                             : IN6_IS_ADDR_LOOPBACK(&at_.v6.sin6_addr);
}

bool Address::is_one_place() const {
  if (family() == AF_INET) {
    const uint32_t host = ntohl(at_.v4.sin_addr.s_addr);
    return host != INADDR_ANY && host != INADDR_BROADCAST && !IN_MULTICAST(host);
  }
  return !IN6_IS_ADDR_UNSPECIFIED(&at_.v6.sin6_addr) && !IN6_IS_ADDR_MULTICAST(&at_.v6.sin6_addr);
}

std::string Address::text() const {
  char host[NI_MAXHOST];
  if (getnameinfo(get(), bytes(), host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "?";
  }
  const std::string port_text = std::to_string(port());
  return family() == AF_INET6 ? "[" + std::string(host) + "]:" + port_text
                              : std::string(host) + ":" + port_text;
}

std::span<const uint8_t> Address::ip() const {
  return family() == AF_INET ? std::span(reinterpret_cast<const uint8_t*>(&at_.v4.sin_addr),
                                         sizeof(at_.v4.sin_addr))
                             : std::span(at_.v6.sin6_addr.s6_addr);
}

bool Address::operator==(const Address& other) const {
  return family() == other.family() && port() == other.port() &&
         std::ranges::equal(ip(), other.ip()) &&
         (family() == AF_INET || at_.v6.sin6_scope_id == other.at_.v6.sin6_scope_id);
}

bool Address::operator<(const Address& other) const {
  return std::ranges::equal(ip(), other.ip())
             ? port() < other.port()
             : std::ranges::lexicographical_compare(ip(), other.ip());
}

}  // namespace rio::wire::udp
