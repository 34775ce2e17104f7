#include "base/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace rio::base {
namespace {

/// Opens a socket. @param address set to the form of `path` that the kernel takes.
[[nodiscard]] int open_socket(const std::string& path, int type, sockaddr_un* address, Fd* out) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address->sun_path) {
    return -ENAMETOOLONG;
  }
  std::memcpy(address->sun_path, path.data(), path.size());
  *out = Fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return out->valid() ? 0 : -errno;
}

/// Room for the descriptors of one message, aligned as the kernel wants it.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kFdsMax)];
};

/// Takes over the descriptors of a message.
void collect(msghdr& message, std::vector<Fd>* out) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      out->emplace_back(fd);
    }
  }
}

}  // namespace

int listen_at(const std::string& path, int type, Fd* out, int backlog) {
  sockaddr_un address;
  Fd fd;
  if (const int rc = open_socket(path, type, &address, &fd); rc != 0) {
    return rc;
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    Fd other;
    if (!S_ISSOCK(info.st_mode) || connect_to(path, type, &other) != -ECONNREFUSED) {
      return -EADDRINUSE;
    }
    unlink(path.c_str());
  }
  // The mode that bind() gives to the path.
  if (fchmod(fd.get(), 0600) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), backlog) != 0) {
    return -errno;
  }
  *out = std::move(fd);
  return 0;
}

int connect_to(const std::string& path, int type, Fd* out) {
  sockaddr_un address;
  Fd fd;
  if (const int rc = open_socket(path, type, &address, &fd); rc != 0) {
    return rc;
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return -errno;
  }
  *out = std::move(fd);
  return 0;
}

int accept_from(const Fd& listener, Fd* out) {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    return -errno;
  }
  *out = std::move(fd);
  return 0;
}

int send_with_fds(const Fd& socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kFdsMax) {
    return -EINVAL;
  }
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    return -errno;
  }
  return static_cast<size_t>(sent) == bytes.size() ? 0 : -EAGAIN;
}

ssize_t receive_with_fds(const Fd& socket, std::span<std::byte> bytes, std::vector<Fd>* fds) {
  iovec part{bytes.data(), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    return -errno;
  }
  std::vector<Fd> came;
  collect(message, &came);
  if ((message.msg_flags & MSG_CTRUNC) != 0 && came.size() < kFdsMax) {
    return -EMFILE;  // the kernel sets this flag also if this process has too many open files
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return -EMSGSIZE;
  }
  *fds = std::move(came);
  return got;
}

}  // namespace rio::base
