/// @file
/// Node and service, as fi_getinfo() and fi_av_insertsvc() take them.
///
/// A service is a number that an endpoint serves on this machine (service.hpp), so a node is this
/// machine: its name, or one of its addresses. Or the node is a name as fi_av_straddr() prints it,
/// rio://DESTID/ENDPOINT or rio://HOST:PORT/ENDPOINT, of an endpoint anywhere, without a service.
#pragma once

#include <sys/socket.h>

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

/// Whether an IP address is one of this machine. @param address with port 0.
[[nodiscard]] bool is_own(const sockaddr* address, socklen_t bytes);

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

/// Print an address: a Name as print_name() does, a service as "rio://:NUMBER". @return as
/// snprintf().
int print_address(const Name& name, char* out, size_t bytes);

}  // namespace rio::ofi
