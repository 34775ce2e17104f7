#include "lib/ofi/resolve.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/number.hpp"

namespace rio::ofi {
namespace {

constexpr std::string_view kPrefix = "rio://";
/// First word of a service's address: "rios", and the version of this format.
constexpr uint32_t kServiceMagic = 0x736F6901;

struct Freed {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
using Addresses = std::unique_ptr<addrinfo, Freed>;

/// Parse "DESTID/ENDPOINT" or "HOST:PORT/ENDPOINT".
[[nodiscard]] bool parse_name(std::string_view text, uint16_t fabric, Name* out) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) {
    return false;
  }
  const std::string_view at = text.substr(0, slash);
  uint64_t endpoint = 0;
  uint64_t dest_id = 0;
  Name name = {};
  name.magic = kNameMagic;
  name.fabric = fabric;
  if (!base::read_number(text.substr(slash + 1), 0, kEndpoints - 1, &endpoint)) {
    return false;
  }
  if (at.find(':') != std::string_view::npos) {
    if (at.size() >= sizeof(name.address)) {
      return false;
    }
    at.copy(name.address, at.size());
  } else if (!base::read_number(at, 0, (1u << (32 - tag::kContextBits)) - 1, &dest_id)) {
    return false;
  }
  name.dest_id = static_cast<uint32_t>(dest_id);
  name.endpoint = static_cast<uint16_t>(endpoint);
  *out = name;
  return true;
}

/// Look up a host.
[[nodiscard]] int look_up(const char* node, bool numeric, Addresses* out, int family = AF_UNSPEC) {
  addrinfo hints = {};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = numeric ? AI_NUMERICHOST : 0;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(node, nullptr, &hints, &list);
  if (rc == 0) {
    out->reset(list);
  }
  return rc;
}

/// Whether an IP address is one of this machine. @param address with port 0.
[[nodiscard]] bool can_bind(const sockaddr* address, socklen_t bytes) {
  const base::Fd fd(socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && bind(fd.get(), address, bytes) == 0;
}

/// Get the first of a node's IPv4 addresses that this machine has. @return false: there is none.
[[nodiscard]] bool own_address_of(const char* node, in_addr* out) {
  Addresses list;
  static_cast<void>(look_up(node, false, &list, AF_INET));
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    sockaddr_in address{};
    if (read_socket(each->ai_addr, &address) == 0 && is_own(address.sin_addr)) {
      *out = address.sin_addr;
      return true;
    }
  }
  return false;
}

/// @return empty: a name of this machine; else the cause.
[[nodiscard]] std::string wrong_node(const char* node, bool numeric) {
  Addresses list;
  if (const int rc = look_up(node, numeric, &list); rc != 0) {
    return gai_strerror(rc);
  }
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    if (can_bind(each->ai_addr, each->ai_addrlen)) {
      return "";
    }
  }
  return "it is another machine";
}

/// Read a port, or look up the name of one in /etc/services. @return false: it is neither.
[[nodiscard]] bool port_of(const char* service, uint16_t* out) {
  uint64_t number = 0;
  if (service == nullptr || base::read_number(service, 0, UINT16_MAX, &number)) {
    *out = static_cast<uint16_t>(number);
    return true;
  }
  servent entry{};
  servent* found = nullptr;
  char text[1024];
  if (getservbyname_r(service, "tcp", &entry, text, sizeof(text), &found) != 0 ||
      found == nullptr) {
    return false;
  }
  *out = ntohs(static_cast<uint16_t>(found->s_port));
  return true;
}

/// @return the error; empty: none.
[[nodiscard]] std::string find_place(const NodeService& place, uint16_t fabric, Name* out) {
  if (place.node != nullptr && std::string_view(place.node).starts_with(kPrefix)) {
    if (place.service != nullptr) {
      return "a name of an endpoint takes no service";
    }
    return parse_name(place.node + kPrefix.size(), fabric, out)
               ? ""
               : "it must be rio://DESTID/ENDPOINT or rio://HOST:PORT/ENDPOINT";
  }
  uint16_t port = 0;
  if (!port_of(place.service, &port)) {
    return "its service is neither a number from 0 to 65535 nor a name in /etc/services";
  }
  if (place.node != nullptr) {
    if (const std::string wrong = wrong_node(place.node, place.numeric); !wrong.empty()) {
      return wrong +
             "; services are found on one machine only; name an endpoint of another machine as "
             "fi_av_straddr() prints it there, rio://DESTID/ENDPOINT";
    }
  }
  *out = name_of_service(fabric, port, place.node != nullptr);
  return "";
}

}  // namespace

int resolve(const NodeService& place, uint16_t fabric, bool loud, Name* out) {
  const std::string wrong = find_place(place, fabric, out);
  if (wrong.empty()) {
    return 0;
  }
  if (loud) {
    base::log_error("rio: node %s, service %s: %s",
                    base::printable(place.node == nullptr ? "(none)" : place.node).c_str(),
                    base::printable(place.service == nullptr ? "(none)" : place.service).c_str(),
                    wrong.c_str());
  }
  return -FI_ENODATA;
}

Name name_of_service(uint16_t fabric, uint16_t number, bool is_needed) {
  Name name = {};
  name.magic = kServiceMagic;
  name.dest_id = number;
  name.endpoint = is_needed ? 1 : 0;
  name.fabric = fabric;
  return name;
}

bool is_service(const Name& name) {
  return name.magic == kServiceMagic;
}

int read_address(const void* bytes, uint16_t fabric, Name* out) {
  Name name;
  std::memcpy(&name, bytes, sizeof(name));
  if (!is_service(name)) {
    return read_name(bytes, fabric, out);
  }
  const Name right = name_of_service(fabric, service_of(name), is_needed(name));
  const bool ours = name.fabric == right.fabric;
  name.fabric = right.fabric;
  if (std::memcmp(&name, &right, sizeof(name)) != 0) {
    return -EINVAL;
  }
  *out = name;
  return ours ? 0 : -EHOSTUNREACH;
}

int print_address(const Name& name, char* out, size_t bytes) {
  if (is_service(name)) {
    return std::snprintf(out, bytes, "rio://:%u", unsigned{service_of(name)});
  }
  const auto length = static_cast<int>(strnlen(name.address, sizeof(name.address)));
  return length > 0
             ? std::snprintf(out, bytes, "rio://%.*s/%u", length, name.address, name.endpoint)
             : std::snprintf(out, bytes, "rio://%u/%u", name.dest_id, name.endpoint);
}

bool is_socket_format(uint32_t addr_format) {
  return addr_format == FI_SOCKADDR || addr_format == FI_SOCKADDR_IN;
}

in_addr own_ipv4() {
  in_addr found{htonl(INADDR_LOOPBACK)};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return found;
  }
  const std::unique_ptr<ifaddrs, Freed> held(list);
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
  return can_bind(reinterpret_cast<const sockaddr*>(&tried), sizeof(tried));
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
