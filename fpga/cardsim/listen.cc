#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/peer_process.hpp"
#include "base/unix_socket.hpp"
#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/client_memory.hpp"
#include "fpga/cardsim/complain.hpp"
#include "fpga/cardsim/event_irqs.hpp"
#include "fpga/cardsim/listen_protocol.hpp"

namespace rio::cardsim {
namespace {

using protocol::Reply;
using protocol::Request;
using protocol::Verb;

constexpr auto kHelloWithin = std::chrono::seconds(5);
constexpr uint32_t kComplaintsMax = 20;
constexpr uint32_t kRequestsPerServe =
    16;  // a limit, so that a client cannot keep the card from working

[[nodiscard]] int send_reply(const base::Fd& client, const Reply& reply,
                             const std::vector<int>& fds = {}) {
  return base::send_with_fds(client, std::as_bytes(std::span(&reply, 1)), fds);
}

/// The server's side of listen_protocol.hpp. One client at a time, whose messages are not trusted.
class Listen final : public Attachment {
 public:
  Listen(const name::Listen& listen, const CardSpec& spec)
      : path_(listen.socket),
        name_(spec.name),
        bar_bytes_(model::Card::bar_bytes(spec.model.queue_pairs)) {}
  /// Removes the socket.
  ~Listen() override {
    if (listener_.valid()) {
      unlink(path_.c_str());
    }
  }

  Listen(const Listen&) = delete;
  Listen& operator=(const Listen&) = delete;

  [[nodiscard]] int open() {
    if (const int rc = renew(); rc != 0) {
      complain("%s: %s", name_.c_str(),
               base::why({"memory for the BAR, or its eventfds", rc}).c_str());
      return rc;
    }
    const int rc = base::listen_at(path_, SOCK_SEQPACKET, &listener_);
    if (rc != 0) {
      complain("socket=%s: %s; give a path where a socket can be made and no program listens",
               path_.c_str(), std::strerror(-rc));
    }
    return rc;
  }

  model::HostMemory& memory() override { return memory_; }
  model::IrqSink* irqs() override { return &irqs_; }
  void serve() override {
    for (uint32_t i = 0; i < kRequestsPerServe && client_.valid() && take_request(); ++i) {
    }
    if (client_.valid() && client_process_.valid() && base::is_readable(client_process_)) {
      drop(nullptr);
    }
    if (client_.valid() && peer_ == Peer::kNotYet &&
        std::chrono::steady_clock::now() >= hello_until_) {
      drop("it sent no request within 5 s");
    }
    // Handled after the connected client: one that connects when that one has gone is not turned
    // away, but waits until there is a fresh card for it.
    if (peer_ != Peer::kGone) {
      accept();
    }
  }

  int renew() override {
    memory_.clear();
    peer_ = Peer::kNotYet;
    if (const int rc = irqs_.open(protocol::kVectorsMax); rc != 0) {
      return rc;
    }
    return SharedBar::anonymous(bar_bytes_, &bar_);
  }

  void add_wake_fds(std::vector<pollfd>* fds) const override {
    fds->push_back({listener_.get(), POLLIN, 0});
    if (client_.valid()) {
      fds->push_back({client_.get(), POLLIN, 0});
    }
    if (client_process_.valid()) {
      fds->push_back({client_process_.get(), POLLIN, 0});
    }
  }

  AttachmentCounts counts() const override { return {peers_, irqs_.raised(), {}}; }

 private:
  void accept() {
    base::Fd client;
    if (const int rc = base::accept_from(listener_, &client); rc != 0) {
      if (rc != -EAGAIN && rc != -EINTR && rc != -ECONNABORTED && !told_accept_) {
        told_accept_ = true;
        complain("%s: cannot accept a client: %s", name_.c_str(),
                 base::why({"accept4", rc}).c_str());
      }
      return;
    }
    told_accept_ = false;
    if (client_.valid()) {
      static_cast<void>(send_reply(client, {.status = -EBUSY}));  // a closed socket tells it, too
      return;
    }
    client_ = std::move(client);
    watch_client();
    hello_until_ = std::chrono::steady_clock::now() + kHelloWithin;
  }

  /// Take one request. @return false: there is none, or the client has gone.
  [[nodiscard]] bool take_request() {
    Request request;
    std::vector<base::Fd> fds;
    const ssize_t got =
        base::receive_with_fds(client_, std::as_writable_bytes(std::span(&request, 1)), &fds);
    if (got == -EAGAIN || got == -EINTR) {
      return false;
    }
    if (got == 0 || got == -ECONNRESET) {
      drop(nullptr);
      return false;
    }
    if (got != sizeof request || request.magic != protocol::kMagic) {
      drop("it sent something that is not a request; is it a program of another kind?");
      return false;
    }
    if (request.version != protocol::kVersion) {
      drop("it speaks another version; use program and rio-cardsim of one release");
      return false;
    }
    if (const int rc = answer(request, fds); rc != 0) {
      drop(rc == -EPROTO ? "its request breaks the protocol" : "it does not receive its answers");
      return false;
    }
    return true;
  }

  [[nodiscard]] int answer(const Request& request, const std::vector<base::Fd>& fds) {
    if (peer_ == Peer::kNotYet) {
      if (request.verb != Verb::kHello || !fds.empty()) {
        return -EPROTO;
      }
      welcome_peer();
      std::vector<int> shown = irqs_.fds();
      shown.insert(shown.begin(), bar_.fd());
      return send_reply(
          client_,
          {.vectors = protocol::kVectorsMax, .bar_bytes = static_cast<uint32_t>(bar_.len_bytes())},
          shown);
    }
    switch (request.verb) {
      case Verb::kMap:
        return fds.size() != 1 ? -EPROTO
                               : reply(memory_.map(request.iova, request.offset, request.len_bytes,
                                                   fds.front()));
      case Verb::kUnmap:
        // No step is under way: this thread makes the steps.
        return !fds.empty() ? -EPROTO : reply(memory_.unmap(request.iova));
      default:
        return -EPROTO;
    }
  }

  [[nodiscard]] int reply(int32_t status) { return send_reply(client_, {.status = status}); }
  void watch_client() {
    ucred peer{};
    client_process_.reset();
    if (!base::peer_of(client_, &peer) || peer.pid <= 0) {
      return;  // the peer is in another pid namespace: rely on its socket alone
    }
    const base::Trouble trouble = base::watch_process(peer.pid, &client_process_);
    if (trouble && trouble.rc != -ESRCH && !told_pidfd_) {
      told_pidfd_ = true;
      complain("%s: a client's death goes unseen while a child forked by it lives: %s",
               name_.c_str(), base::why(trouble).c_str());
    }
  }

  void drop(const char* why) {
    if (why != nullptr && complaints_ < kComplaintsMax) {
      complain("%s: client disconnected: %s%s", name_.c_str(), why,
               ++complaints_ == kComplaintsMax ? " (further ones will not be reported)" : "");
    }
    client_.reset();
    client_process_.reset();
    if (peer_ == Peer::kHere) {
      peer_ = Peer::kGone;
    }
  }

  std::string path_;
  std::string name_;
  size_t bar_bytes_;
  EventIrqs irqs_;
  ClientMemory memory_;
  base::Fd listener_;
  base::Fd client_;
  base::Fd client_process_;  // pidfd; a child forked by the client keeps the client's socket open
  std::chrono::steady_clock::time_point hello_until_;
  uint32_t complaints_ = 0;
  bool told_pidfd_ = false;
  bool told_accept_ = false;
};

}  // namespace

int attach(const name::Listen& listen, const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  auto attachment = std::make_unique<Listen>(listen, spec);
  if (const int rc = attachment->open(); rc != 0) {
    return rc;
  }
  *out = std::move(attachment);
  return 0;
}

}  // namespace rio::cardsim
