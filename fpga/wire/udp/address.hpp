/// @file
/// The address of a member: IP, version 4 or 6, and a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rio::wire::udp {

/// A value type. Any thread.
class Address {
 public:
  Address() = default;
  /// From the kernel's form. If it is of neither version, family() is AF_UNSPEC.
  Address(const sockaddr* at, socklen_t bytes);

  /// Parse "10.0.0.2:7000" or "[fe80::1%eth0]:7000"; with `resolve` also "host.name:7000", which
  /// may ask a name server. @return 0, or -EINVAL: not an address, or there is no such host.
  [[nodiscard]] static int parse(std::string_view text, bool resolve, Address* out);
  /// Choose an address of this machine. @param where an address without a port, an interface's
  /// name, or empty: the first interface that is up and not loopback, else loopback. @return 0, or
  /// -EADDRNOTAVAIL: there is none.
  [[nodiscard]] static int local(const std::string& where, uint16_t port, Address* out);

  [[nodiscard]] int family() const { return at_.any.sa_family; }
  [[nodiscard]] const sockaddr* get() const { return &at_.any; }
  [[nodiscard]] socklen_t bytes() const;
  [[nodiscard]] uint16_t port() const;
  [[nodiscard]] Address with_port(uint16_t port) const;
  /// Whether only this machine reaches it.
  [[nodiscard]] bool is_loopback() const;
  /// Whether a single machine can have it: not the address of all interfaces, nor of a group.
  [[nodiscard]] bool is_one_place() const;
  /// In the form that parse() accepts.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool operator==(const Address& other) const;
  /// Orders addresses of one version, equally on all machines.
  [[nodiscard]] bool operator<(const Address& other) const;

 private:
  /// The IP address without the port, in the network's order.
  [[nodiscard]] std::span<const uint8_t> ip() const;

  union {
    sockaddr any = {};
    sockaddr_in v4;
    sockaddr_in6 v6;
  } at_;
};

}  // namespace rio::wire::udp
