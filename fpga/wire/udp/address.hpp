/// @file
/// Where a member is: an address of IP, version 4 or 6, and a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace rio::wire::udp {

/// A value. Any thread.
class Address {
 public:
  Address() = default;
  /// As the kernel gives it. Neither version: family() is AF_UNSPEC.
  Address(const sockaddr* at, socklen_t bytes);

  /// "10.0.0.2:7000", "[fe80::1%eth0]:7000"; with `resolve` also "host.name:7000", which may ask
  /// a name server. @return 0, or -EINVAL: it is none, or there is no such host.
  [[nodiscard]] static int parse(std::string_view text, bool resolve, Address* out);
  /// An address of this machine. @param where an address without a port, an interface's name, or
  /// empty: that of the first interface that is up and no loopback, else of loopback. @return 0, or
  /// -EADDRNOTAVAIL: there is none.
  [[nodiscard]] static int local(const std::string& where, uint16_t port, Address* out);

  [[nodiscard]] int family() const { return at_.any.sa_family; }
  [[nodiscard]] const sockaddr* get() const { return &at_.any; }
  [[nodiscard]] socklen_t bytes() const;
  [[nodiscard]] uint16_t port() const;
  [[nodiscard]] Address with_port(uint16_t port) const;
  /// Whether only this machine reaches it.
  [[nodiscard]] bool is_loopback() const;
  /// Whether one machine can have it: not the address of all interfaces, nor of a group.
  [[nodiscard]] bool is_one_place() const;
  /// As parse() takes it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool operator==(const Address& other) const;
  /// An order of addresses of one version, the same on all machines.
  [[nodiscard]] bool operator<(const Address& other) const;

 private:
  union {
    sockaddr any = {};
    sockaddr_in v4;
    sockaddr_in6 v6;
  } at_;
};

}  // namespace rio::wire::udp
