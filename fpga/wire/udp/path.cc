#include "fpga/wire/udp/path.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.hpp"
#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint32_t kHeadersV4 = 28;
constexpr uint32_t kHeadersV6 = 48;

/// Opens a socket bound to an address. @param lack set if this process may not do that, or has no
/// room for it. @return 0, -errno.
[[nodiscard]] int open_at(const Address& address, base::Fd* out, base::Trouble* lack) {
  const Address any_port = address.with_port(0);
  *out = base::Fd(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (out->valid() && bind(out->get(), any_port.get(), any_port.bytes()) == 0) {
    return 0;
  }
  const base::Trouble trouble = base::failed(out->valid() ? "bind" : "socket");
  const int rc = trouble.rc;
  const bool lacks = base::is_shortage(rc) || rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
  *lack = lacks ? trouble : base::Trouble{};  // otherwise the address is the cause
  return rc;
}

}  // namespace

uint32_t Path::datagram_bytes() const {
  return std::clamp(mtu - std::min(mtu, headers), kDatagramMin, kDatagramMax);
}

bool Path::is_wide() const {
  return mtu >= kDatagramMin + headers;
}

Path path_between(const Address& from, const Address& to) {
  const bool v6 = to.family() == AF_INET6;
  Path path;
  path.headers = v6 ? kHeadersV6 : kHeadersV4;
  path.mtu = kDatagramMin + path.headers;
  base::Fd probe;
  const int there = open_at(to, &probe, &path.lack);
  path.peer_is_here = there == 0 || there == -EADDRINUSE;  // all of its ports may be taken
  path.error = path.lack ? path.lack.rc : open_at(from, &probe, &path.lack);
  if (path.error != 0) {
    return path;
  }
  if (connect(probe.get(), to.get(), to.bytes()) != 0) {
    path.error = -errno;
    return path;
  }
  int mtu = 0;
  socklen_t bytes = sizeof(mtu);
  if (getsockopt(probe.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu,
                 &bytes) == 0) {
    path.mtu = static_cast<uint32_t>(mtu);
  }
  return path;
}

Verdict judge(const Address& own, const Address& peer, const Path& path) {
  if (own.family() != peer.family()) {
    return {false, own.text() + " and " + peer.text() +
                       " are of different versions of IP; give all members addresses of one"};
  }
  if (path.lack) {
    return {true, "the way from " + own.text() + " to " + peer.text() +
                      " cannot be checked: " + base::why(path.lack)};
  }
  // The kernel refuses such a path for IPv4, but not for IPv6.
  if (own.is_loopback() && !peer.is_loopback() && !path.peer_is_here) {
    return {false, own.text() + " is a loopback address, which no other machine reaches, and " +
                       peer.text() +
                       " is on another one; give this machine's address in the network, and not "
                       "its own name, if /etc/hosts says that it is at 127.0.1.1"};
  }
  if (!own.is_loopback() && peer.is_loopback()) {
    return {true, peer.text() +
                      " is a loopback address: only a member on this machine can have it, and no "
                      "other machine reaches it; give each member its address in the network"};
  }
  if (path.error != 0) {
    return {true, "there is no way from " + own.text() + " to " + peer.text() + ": " +
                      std::strerror(-path.error) + "; look at this machine's addresses and routes"};
  }
  if (!path.is_wide()) {
    const std::string least = std::to_string(kDatagramMin + path.headers);
    return {true, "the way from " + own.text() + " to " + peer.text() + " takes packets of " +
                      std::to_string(path.mtu) + " bytes, but this wire needs " + least +
                      "; raise the MTU (ip link set dev INTERFACE mtu " + least + ")"};
  }
  return {};
}

}  // namespace rio::wire::udp
