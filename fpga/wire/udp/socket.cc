#include "fpga/wire/udp/socket.hpp"

#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/no_cancel.hpp"

#ifndef UDP_SEGMENT  // Linux 4.18, 5.0
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace rio::wire::udp {
namespace {

constexpr size_t kTakenBytes = 65536;
constexpr size_t kSentBytes = 65000;
constexpr uint32_t kSegmentsMax = 64;
constexpr int kBufferBytes = 4 << 20;

void set(int fd, int level, int name, int value) {
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof(value)));
}

void set_up(int fd, bool v6) {
  // Options that the kernel does not have are not needed.
  set(fd, SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  set(fd, SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  set(fd, SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes);
  set(fd, SOL_SOCKET, SO_SNDBUFFORCE, kBufferBytes);
  set(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (v6) {
    set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  } else {
    set(fd, IPPROTO_IP, IP_RECVERR, 1);
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
}

/// Describes a message. @param address of the sender, or of the receiver; with `address_bytes`.
[[nodiscard]] msghdr header_of(const void* address, socklen_t address_bytes, iovec* part,
                               std::span<char> control) {
  msghdr header{};
  header.msg_name = const_cast<void*>(address);
  header.msg_namelen = address_bytes;
  header.msg_iov = part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  return header;
}

/// Length of each of the datagrams that arrived as one.
[[nodiscard]] size_t segment_of(msghdr& message, size_t all) {
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_GRO) {
      int bytes = 0;
      std::memcpy(&bytes, CMSG_DATA(at), sizeof(bytes));
      return bytes > 0 ? static_cast<size_t>(bytes) : all;
    }
  }
  return all;
}

}  // namespace

int Socket::open(const Address& at, std::unique_ptr<Socket>* out) {
  std::unique_ptr<Socket> made(new Socket);
  made->fd_ = base::Fd(socket(at.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!made->fd_.valid() || bind(made->fd(), at.get(), at.bytes()) != 0) {
    return -errno;
  }
  set_up(made->fd(), at.family() == AF_INET6);
  sockaddr_storage bound{};
  socklen_t bytes = sizeof(bound);
  if (getsockname(made->fd(), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
    return -errno;
  }
  made->address_ = Address(reinterpret_cast<const sockaddr*>(&bound), bytes);
  made->in_.resize(kTakenMax * kTakenBytes);
  made->out_.resize(kSentBytes);
  *out = std::move(made);
  return 0;
}

uint32_t Socket::receive(Listener* listener) {
  mmsghdr messages[kTakenMax] = {};
  iovec parts[kTakenMax];
  sockaddr_storage from[kTakenMax];
  alignas(cmsghdr) char control[kTakenMax][64];
  for (uint32_t i = 0; i < kTakenMax; ++i) {
    parts[i] = {in_.data() + i * kTakenBytes, kTakenBytes};
    messages[i].msg_hdr = header_of(&from[i], sizeof(from[i]), &parts[i], control[i]);
  }
  const base::NoCancel no_cancel;
  const int count = recvmmsg(fd(), messages, kTakenMax, MSG_DONTWAIT, nullptr);
  if (count < 0) {
    errors_ = errors_ || (errno != EAGAIN && errno != EINTR);
  }
  if (errors_) [[unlikely]] {
    errors_ = false;
    take_errors(listener);
  }
  for (int i = 0; i < count; ++i) {
    msghdr& header = messages[i].msg_hdr;
    const Address sender(reinterpret_cast<const sockaddr*>(&from[i]), header.msg_namelen);
    std::span<uint8_t> all(in_.data() + static_cast<size_t>(i) * kTakenBytes, messages[i].msg_len);
    const size_t segment = segment_of(header, all.size());
    while (!all.empty()) {
      const size_t bytes = std::min(segment, all.size());
      listener->on_datagram(sender, all.first(bytes));
      all = all.subspan(bytes);
    }
  }
  return count < 0 ? 0 : static_cast<uint32_t>(count);
}

void Socket::wait_ms(int ms) const {
  pollfd poll_it = {fd(), POLLIN, 0};
  static_cast<void>(poll(&poll_it, 1, ms));
}

void Socket::take_errors(Listener* listener) {
  for (uint32_t left = kSegmentsMax; left > 0; --left) {
    sockaddr_storage to{};
    alignas(cmsghdr) char control[512];
    uint8_t start[64];
    iovec part = {start, sizeof(start)};
    msghdr header = header_of(&to, sizeof(to), &part, control);
    if (recvmsg(fd(), &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      return;
    }
    for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
      const bool told = (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
                        (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR);
      sock_extended_err error{};
      if (told) {
        std::memcpy(&error, CMSG_DATA(at), sizeof(error));
      }
      const Address meant(reinterpret_cast<const sockaddr*>(&to), header.msg_namelen);
      if (error.ee_errno == ECONNREFUSED) {
        listener->on_refused(meant);
      } else if (error.ee_errno == EMSGSIZE) {
        listener->on_narrow(meant, error.ee_info);
      }
    }
  }
}

std::span<uint8_t> Socket::begin(const Address& to, size_t bytes) {
  const bool fits = count_ > 0 && !last_ && to == to_ && bytes <= segment_ &&
                    used_ + bytes <= out_.size() && count_ < kSegmentsMax && segments_;
  if (!fits) {
    flush();
    to_ = to;
  }
  return std::span(out_).subspan(used_);
}

void Socket::set_faults(const PathFaults& faults) {
  random_.seed(faults.seed);
  fault_below_ = static_cast<uint64_t>(faults.rate * 0x1p32);
}

/// Applies faults to the datagram just written. @return whether it does not leave now.
bool Socket::spoil(size_t bytes) {
  constexpr size_t kLateMax = 64;
  if ((random_() & 0xFFFFFFFFu) >= fault_below_) {
    return false;
  }
  const std::span<const uint8_t> datagram = std::span(out_).subspan(used_, bytes);
  switch (random_() % 3) {
    case 0:
      return true;
    case 1:
      static_cast<void>(send(to_, datagram, 0));
      return false;
    default:
      if (late_.size() < kLateMax) {
        late_.push_back({to_, {datagram.begin(), datagram.end()}});
      }
      return true;
  }
}

void Socket::send_late() {
  if (!late_.empty() && random_() % 4 == 0) {
    for (const Late& each : late_) {
      static_cast<void>(send(each.to, each.bytes, 0));
    }
    late_.clear();
  }
}

void Socket::end(size_t bytes) {
  if (fault_below_ != 0 && spoil(bytes)) {
    return;
  }
  if (count_ == 0) {
    segment_ = bytes;
  }
  last_ = bytes != segment_;
  used_ += bytes;
  ++count_;
}

void Socket::flush() {
  if (count_ == 0) {
    if (fault_below_ != 0) {
      send_late();
    }
    return;
  }
  std::span<const uint8_t> all(out_.data(), used_);
  const bool many = count_ > 1;
  count_ = 0;
  used_ = 0;
  last_ = false;
  if (send(to_, all, many ? static_cast<uint16_t>(segment_) : 0) || !many) {
    return;  // what could not be sent counts as lost on the way
  }
  segments_ = false;
  while (!all.empty()) {
    const size_t bytes = std::min(segment_, all.size());
    static_cast<void>(send(to_, all.first(bytes), 0));
    all = all.subspan(bytes);
  }
}

bool Socket::send(const Address& to, std::span<const uint8_t> bytes, uint16_t segment_bytes) {
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(segment_bytes))] = {};
  msghdr header = header_of(to.get(), to.bytes(), &part, {});
  if (segment_bytes != 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* const at = CMSG_FIRSTHDR(&header);
    at->cmsg_level = IPPROTO_UDP;
    at->cmsg_type = UDP_SEGMENT;
    at->cmsg_len = CMSG_LEN(sizeof(segment_bytes));
    std::memcpy(CMSG_DATA(at), &segment_bytes, sizeof(segment_bytes));
  }
  const base::NoCancel no_cancel;
  // Two tries: an error of an earlier datagram is reported first.
  for (int tries = 2; tries > 0; --tries) {
    if (sendmsg(fd(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
      return true;
    }
    errors_ = true;
    if (errno == EIO || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOPROTOOPT) {
      return segment_bytes == 0;
    }
  }
  return true;
}

}  // namespace rio::wire::udp
