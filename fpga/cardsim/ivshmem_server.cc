#include "fpga/cardsim/ivshmem_server.hpp"

#include <endian.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/unix_socket.hpp"
#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

constexpr int64_t kProtocolVersion = 0;
constexpr int64_t kMemory = -1;

[[nodiscard]] int send_number(const base::Fd& guest, int64_t value, int fd = -1) {
  const uint64_t wire = htole64(static_cast<uint64_t>(value));
  return base::send_with_fds(guest, std::as_bytes(std::span(&wire, 1)),
                             std::span(&fd, fd >= 0 ? 1u : 0u));
}

}  // namespace

int IvshmemServer::open(const std::string& socket_path) {
  if (const int rc = base::listen_at(socket_path, SOCK_STREAM, &listener_); rc != 0) {
    complain("socket=%s: %s; give a path where a socket can be made and no program listens",
             socket_path.c_str(), std::strerror(-rc));
    return rc;
  }
  path_ = socket_path;
  return 0;
}

IvshmemServer::~IvshmemServer() {
  if (listener_.valid()) {
    unlink(path_.c_str());
  }
}

int IvshmemServer::greet(const base::Fd& guest, int bar, const std::vector<int>& irqs,
                         const std::vector<int>& rings) const {
  int rc = send_number(guest, kProtocolVersion);
  rc = rc != 0 ? rc : send_number(guest, kGuestPeer);
  rc = rc != 0 ? rc : send_number(guest, kMemory, bar);
  for (const int fd : rings) {
    rc = rc != 0 ? rc : send_number(guest, kCardPeer, fd);
  }
  for (const int fd : irqs) {
    rc = rc != 0 ? rc : send_number(guest, kGuestPeer, fd);
  }
  return rc;
}

void IvshmemServer::accept(int bar, const std::vector<int>& irqs, const std::vector<int>& rings) {
  base::Fd guest;
  if (base::accept_from(listener_, &guest) != 0) {
    return;
  }
  if (guest_.valid()) {
    if (!told_) {
      complain("socket=%s: a second guest was turned away; give it a --card of its own",
               path_.c_str());
      told_ = true;
    }
    return;
  }
  if (const int rc = greet(guest, bar, irqs, rings); rc != 0) {
    complain("socket=%s: the guest did not take its greeting: %s", path_.c_str(),
             std::strerror(-rc));
    return;
  }
  guest_ = std::move(guest);
  peer_ = Peer::kHere;
  ++guests_;
}

void IvshmemServer::look_at_guest() {
  char ignored[64];  // a guest has nothing to say
  const ssize_t got = recv(guest_.get(), ignored, sizeof ignored, MSG_DONTWAIT);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) {
    return;
  }
  guest_.reset();
  peer_ = Peer::kGone;
}

void IvshmemServer::serve(int bar, const std::vector<int>& irqs, const std::vector<int>& rings) {
  if (guest_.valid()) {
    look_at_guest();
  }
  if (peer_ != Peer::kGone) {  // the next guest waits until there is a fresh card for it
    accept(bar, irqs, rings);
  }
}

void IvshmemServer::add_wake_fds(std::vector<pollfd>* fds) const {
  fds->push_back({listener_.get(), POLLIN, 0});
  if (guest_.valid()) {
    fds->push_back({guest_.get(), POLLIN, 0});
  }
}

}  // namespace rio::cardsim
