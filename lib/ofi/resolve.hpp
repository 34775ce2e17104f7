/// @file
/// Addresses of endpoints, in our own format or in libfabric's FI_SOCKADDR_IN for programs written
/// for IP, and the node and service by which fi_getinfo() and fi_av_insertsvc() name them.
///
/// A service is a number that an endpoint serves on this machine (service.hpp), so a node is this
/// machine: its name, or one of its addresses. Or the node is a name as fi_av_straddr() prints it,
/// rio://DESTID/ENDPOINT or rio://HOST:PORT/ENDPOINT, of an endpoint anywhere, without a service.
/// An address in FI_SOCKADDR_IN is an IPv4 address of this machine, and a service in place of a
/// port.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "lib/ofi/name.hpp"

namespace rio::ofi {

struct NodeService {
  const char* node = nullptr;     ///< null: this machine
  const char* service = nullptr;  ///< null: none, as 0
  bool numeric = false;           ///< FI_NUMERICHOST
};

/// Resolve a place to an address for the user: a Name, or a name of a service, which stands for the
/// endpoint that serves it when the address is used. Any thread, control path only. @param fabric
/// mark of its name. @param loud log errors. @return 0, -FI_ENODATA.
[[nodiscard]] int resolve(const NodeService& place, uint16_t fabric, bool loud, Name* out);

/// A name for a service of this machine, valid on this machine. @param number 0: no service; as a
/// source address it leaves the choice to the endpoint. @param is_needed as a source address:
/// refuse an endpoint that cannot have the service. False without a node: some frameworks give both
/// ends one service.
[[nodiscard]] Name name_of_service(uint16_t fabric, uint16_t number, bool is_needed);

/// Read an address from foreign bytes: a Name, or a name of a service. @return 0; -EINVAL: neither;
/// -EHOSTUNREACH: of another fabric.
[[nodiscard]] int read_address(const void* bytes, uint16_t fabric, Name* out);

[[nodiscard]] bool is_service(const Name& name);
/// The number of a service. @param name is_service().
[[nodiscard]] inline uint16_t service_of(const Name& name) {
  return static_cast<uint16_t>(name.dest_id);
}
[[nodiscard]] inline bool is_needed(const Name& name) {
  return name.endpoint != 0;
}

/// Print an address: "rio://DESTID/ENDPOINT", "rio://HOST:PORT/ENDPOINT", or "rio://:NUMBER" of a
/// service. @return as snprintf().
int print_address(const Name& name, char* out, size_t bytes);

/// Whether a format means FI_SOCKADDR_IN: FI_SOCKADDR leaves the family to the provider.
[[nodiscard]] bool is_socket_format(uint32_t addr_format);

/// The first IPv4 address of this machine that is not a loopback address; without one 127.0.0.1.
[[nodiscard]] in_addr own_ipv4();

/// @param port 0: none yet.
[[nodiscard]] sockaddr_in make_socket(in_addr address, uint16_t port);

/// Whether an IPv4 address is one of this machine; 0.0.0.0 is.
[[nodiscard]] bool is_own(in_addr address);

/// resolve() to FI_SOCKADDR_IN. Any thread, control path only. @return 0, -FI_ENODATA.
[[nodiscard]] int resolve_socket(const NodeService& place, uint16_t fabric, bool loud,
                                 sockaddr_in* out);

/// Check foreign bytes. @param bytes sizeof(sockaddr_in) of them. @return 0; -EINVAL: another
/// family, or an address that no single machine has.
[[nodiscard]] int read_socket(const void* bytes, sockaddr_in* out);

/// Print it in libfabric's notation, "fi_sockaddr_in://127.0.0.1:9228". @return as snprintf().
int print_socket(const sockaddr_in& address, char* out, size_t bytes);

}  // namespace rio::ofi
