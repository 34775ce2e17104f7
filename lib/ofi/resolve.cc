#include "lib/ofi/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
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
};

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

/// Look up a host, or the port of a service named in /etc/services.
[[nodiscard]] int look_up(const char* node, const char* service, bool numeric,
                          std::unique_ptr<addrinfo, Freed>* out) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = numeric ? AI_NUMERICHOST : 0;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(node, service, &hints, &list);
  if (rc == 0) {
    out->reset(list);
  }
  return rc;
}

/// @return empty: a name of this machine; else the cause.
[[nodiscard]] std::string wrong_node(const char* node, bool numeric) {
  std::unique_ptr<addrinfo, Freed> list;
  if (const int rc = look_up(node, nullptr, numeric, &list); rc != 0) {
    return gai_strerror(rc);
  }
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    if (is_own(each->ai_addr, each->ai_addrlen)) {
      return "";
    }
  }
  return "it is another machine";
}

/// @return false: neither a port number nor the name of one.
[[nodiscard]] bool port_of(const char* service, uint16_t* out) {
  uint64_t number = 0;
  if (service == nullptr || base::read_number(service, 0, UINT16_MAX, &number)) {
    *out = static_cast<uint16_t>(number);
    return true;
  }
  std::unique_ptr<addrinfo, Freed> list;
  // Numbers are not looked up, because getaddrinfo() reads "70000" as 4464.
  if (std::isalpha(static_cast<unsigned char>(*service)) == 0 ||
      look_up(nullptr, service, false, &list) != 0) {
    return false;
  }
  uint16_t port = 0;  // sockaddr_in and sockaddr_in6 have it at the same place
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&port,
              reinterpret_cast<const uint8_t*>(list->ai_addr) + offsetof(sockaddr_in, sin_port),
              sizeof(port));
  *out = ntohs(port);
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

bool is_own(const sockaddr* address, socklen_t bytes) {
  const base::Fd fd(socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && bind(fd.get(), address, bytes) == 0;
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
  return is_service(name) ? std::snprintf(out, bytes, "rio://:%u", unsigned{service_of(name)})
                          : print_name(name, out, bytes);
}

}  // namespace rio::ofi
