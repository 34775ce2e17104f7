/// @file
/// Addresses in libfabric's format FI_SOCKADDR_IN, for programs written for IP.
///
/// An address is an IPv4 address of this machine and a service (service.hpp) in place of a port.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

#include "lib/ofi/resolve.hpp"

namespace rio::ofi {

/// Whether a format means FI_SOCKADDR_IN: FI_SOCKADDR leaves the family to the provider.
[[nodiscard]] bool is_socket_format(uint32_t addr_format);

/// The first IPv4 address of this machine that is not a loopback address; without one 127.0.0.1.
[[nodiscard]] in_addr own_ipv4();

/// @param port 0: none yet.
[[nodiscard]] sockaddr_in make_socket(in_addr address, uint16_t port);

/// Whether an IPv4 address is one of this machine; 0.0.0.0 is.
[[nodiscard]] bool is_own(in_addr address);

/// resolve() for this format. Any thread, control path only. @return 0, -FI_ENODATA.
[[nodiscard]] int resolve_socket(const NodeService& place, uint16_t fabric, bool loud,
                                 sockaddr_in* out);

/// Check foreign bytes. @param bytes sizeof(sockaddr_in) of them. @return 0; -EINVAL: another
/// family, or an address that no single machine has.
[[nodiscard]] int read_socket(const void* bytes, sockaddr_in* out);

/// Print it in libfabric's notation, "fi_sockaddr_in://127.0.0.1:9228". @return as snprintf().
int print_socket(const sockaddr_in& address, char* out, size_t bytes);

}  // namespace rio::ofi
