#include <endian.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/unix_socket.hpp"
#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/complain.hpp"
#include "fpga/cardsim/event_irqs.hpp"
#include "fpga/cardsim/guest_memory.hpp"

namespace rio::cardsim {
namespace {

// Numbers of the ivshmem protocol.
constexpr int64_t kProtocolVersion = 0;
constexpr int64_t kMemory = -1;
constexpr int64_t kCardPeer = 0;
constexpr int64_t kGuestPeer = 1;

[[nodiscard]] int send_number(const base::Fd& guest, int64_t value, int fd = -1) {
  const uint64_t wire = htole64(static_cast<uint64_t>(value));
  return base::send_with_fds(guest, std::as_bytes(std::span(&wire, 1)),
                             std::span(&fd, fd >= 0 ? 1u : 0u));
}

/// The server's side of the ivshmem protocol, for one guest and the card. It sends 8-byte
/// little-endian numbers over a stream socket, each with at most one descriptor: greet(). QEMU:
/// docs/specs/ivshmem-spec.
class Doorbell final : public Attachment {
 public:
  Doorbell(const name::Doorbell& way, const CardSpec& spec)
      : way_(way),
        name_(spec.name),
        bar_bytes_(model::Card::bar_bytes(spec.model.queue_pairs)),
        memory_(way.guest) {}
  /// Removes the socket.
  ~Doorbell() override {
    if (listener_.valid()) {
      unlink(way_.socket.c_str());
    }
  }

  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  [[nodiscard]] int open() {
    int rc = SharedBar::anonymous(bar_bytes_, &bar_);
    rc = rc != 0 ? rc : irqs_.open(way_.vectors);
    rc = rc != 0 ? rc : rings_.open(way_.vectors);
    if (rc != 0) {
      complain("%s: no memory for the BAR or its eventfds: %s; raise ulimit -n?", name_.c_str(),
               std::strerror(-rc));
      return rc;
    }
    rc = base::listen_at(way_.socket, SOCK_STREAM, &listener_);
    if (rc != 0) {
      complain("socket=%s: %s; give a path where a socket can be made and no program listens",
               way_.socket.c_str(), std::strerror(-rc));
    }
    return rc;
  }

  model::HostMemory& memory() override { return memory_; }
  model::IrqSink* irqs() override { return &irqs_; }
  void begin_turn() override { memory_.begin_turn(bar_.gen_req()); }
  void serve() override {
    memory_.serve();
    if (guest_.valid()) {
      check_guest();
    }
    if (peer_ != Peer::kGone) {  // the next guest waits until there is a fresh card for it
      accept();
    }
    rings_.take();
  }

  int renew() override {
    if (const int rc = SharedBar::anonymous(bar_bytes_, &bar_); rc != 0) {
      return rc;
    }
    memory_.forget_guest();
    peer_ = Peer::kNotYet;
    return 0;
  }

  void add_wake_fds(std::vector<pollfd>* fds) const override {
    fds->push_back({listener_.get(), POLLIN, 0});
    if (guest_.valid()) {
      fds->push_back({guest_.get(), POLLIN, 0});
    }
    for (const int fd : rings_.fds()) {
      fds->push_back({fd, POLLIN, 0});
    }
  }

  AttachmentCounts counts() const override { return {peers_, irqs_.raised(), rings_.raised()}; }

 private:
  /// Send version 0; the guest's number; -1 with the BAR; the card's number with an eventfd for
  /// each vector (the guest rings them); the guest's number with an eventfd for each vector (they
  /// raise its MSI-X).
  [[nodiscard]] int greet(const base::Fd& guest) const {
    int rc = send_number(guest, kProtocolVersion);
    rc = rc != 0 ? rc : send_number(guest, kGuestPeer);
    rc = rc != 0 ? rc : send_number(guest, kMemory, bar_.fd());
    for (const int fd : rings_.fds()) {
      rc = rc != 0 ? rc : send_number(guest, kCardPeer, fd);
    }
    for (const int fd : irqs_.fds()) {
      rc = rc != 0 ? rc : send_number(guest, kGuestPeer, fd);
    }
    return rc;
  }

  void accept() {
    base::Fd guest;
    if (base::accept_from(listener_, &guest) != 0) {
      return;
    }
    if (guest_.valid()) {
      if (!told_) {
        complain("socket=%s: a second guest was turned away; give it a --card of its own",
                 way_.socket.c_str());
        told_ = true;
      }
      return;
    }
    if (const int rc = greet(guest); rc != 0) {
      complain("socket=%s: the guest did not take its greeting: %s", way_.socket.c_str(),
               std::strerror(-rc));
      return;
    }
    guest_ = std::move(guest);
    welcome_peer();
  }

  void check_guest() {
    char ignored[64];  // a guest sends nothing that matters
    const ssize_t got = recv(guest_.get(), ignored, sizeof ignored, MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) {
      return;
    }
    guest_.reset();
    peer_ = Peer::kGone;
  }

  name::Doorbell way_;
  std::string name_;
  size_t bar_bytes_;
  GuestMemory memory_;
  EventIrqs irqs_;   // rung by the card
  EventIrqs rings_;  // rung by the guest
  base::Fd listener_;
  base::Fd guest_;
  bool told_ = false;
};

}  // namespace

int attach(const name::Doorbell& doorbell, const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  auto attachment = std::make_unique<Doorbell>(doorbell, spec);
  if (const int rc = attachment->open(); rc != 0) {
    return rc;
  }
  *out = std::move(attachment);
  return 0;
}

}  // namespace rio::cardsim
