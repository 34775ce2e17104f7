#include "lib/ofi/socket_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/log.hpp"
#include "base/number.hpp"

namespace rio::ofi {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// Get the first of a node's IPv4 addresses that this machine has. @return false: there is none.
[[nodiscard]] bool own_address_of(const char* node, in_addr* out) {
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(node, nullptr, &hints, &list) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, FreeAddresses> held(list);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    sockaddr_in address{};
    if (read_socket(each->ai_addr, &address) == 0 && is_own(address.sin_addr)) {
      *out = address.sin_addr;
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_socket_format(uint32_t addr_format) {
  return addr_format == FI_SOCKADDR || addr_format == FI_SOCKADDR_IN;
}

in_addr own_ipv4() {
  in_addr found{htonl(INADDR_LOOPBACK)};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return found;
  }
  const std::unique_ptr<ifaddrs, FreeInterfaces> held(list);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const bool is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (is_up && each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET) {
      sockaddr_in address{};
      std::memcpy(&address, each->ifa_addr, sizeof(address));
      return address.sin_addr;
    }
  }
  return found;
}

sockaddr_in make_socket(in_addr address, uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_addr = address;
  made.sin_port = htons(port);
  return made;
}

bool is_own(in_addr address) {
  const sockaddr_in tried = make_socket(address, 0);
  return is_own(reinterpret_cast<const sockaddr*>(&tried), sizeof(tried));
}

int resolve_socket(const NodeService& place, uint16_t fabric, bool loud, sockaddr_in* out) {
  Name name{};
  if (const int rc = resolve(place, fabric, loud, &name); rc != 0) {
    return rc;
  }
  in_addr address{};
  if (place.node == nullptr) {
    address = own_ipv4();
  } else if (!is_service(name) || !own_address_of(place.node, &address)) {
    if (loud) {
      base::log_error(
          "rio: node %s has no IPv4 address of this machine, as FI_SOCKADDR_IN wants it",
          base::printable(place.node).c_str());
    }
    return -FI_ENODATA;
  }
  *out = make_socket(address, service_of(name));
  return 0;
}

int read_socket(const void* bytes, sockaddr_in* out) {
  sockaddr_in read{};
  std::memcpy(&read, bytes, sizeof(read));
  constexpr uint32_t kFirstNotUnicast = 0xE0000000;  // multicast, reserved, broadcast
  if (read.sin_family != AF_INET || ntohl(read.sin_addr.s_addr) >= kFirstNotUnicast) {
    return -EINVAL;
  }
  *out = make_socket(read.sin_addr, ntohs(read.sin_port));  // without the foreign padding
  return 0;
}

int print_socket(const sockaddr_in& address, char* out, size_t bytes) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::snprintf(out, bytes, "fi_sockaddr_in://%s:%u", text.data(),
                       unsigned{ntohs(address.sin_port)});
}

}  // namespace rio::ofi
