/// @file
/// A card for a program of this machine.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/client_memory.hpp"
#include "fpga/cardsim/event_irqs.hpp"
#include "fpga/cardsim/listen_protocol.hpp"
#include "fpga/cardsim/shared_bar.hpp"

namespace rio::cardsim {

/// The server's side of listen_protocol.hpp. One client at a time, whose word is not trusted.
class Listen final : public Attachment {
 public:
  Listen(const name::Listen& listen, const CardSpec& spec);
  /// Removes the socket.
  ~Listen() override;
  Listen(const Listen&) = delete;
  Listen& operator=(const Listen&) = delete;

  /// Listen. @return 0, or -errno, told on stderr.
  [[nodiscard]] int open();

  uint8_t* bar() override { return bar_.va(); }
  model::HostMemory& memory() override { return memory_; }
  model::IrqSink* irqs() override { return &irqs_; }
  void serve() override;
  Peer peer() const override { return peer_; }
  int renew() override;
  void add_wake_fds(std::vector<pollfd>* fds) const override;
  AttachmentCounts counts() const override;

 private:
  using Time = std::chrono::steady_clock::time_point;

  void accept();
  /// Take one request. @return false: none is there, or the client has gone.
  [[nodiscard]] bool take_request();
  [[nodiscard]] int answer(const protocol::Request& request, const std::vector<base::Fd>& fds);
  [[nodiscard]] int reply(int32_t status);
  [[nodiscard]] int welcome();
  void watch_client();
  void drop(const char* why);

  std::string path_;
  std::string name_;
  uint32_t queue_pairs_;
  SharedBar bar_;
  EventIrqs irqs_;
  ClientMemory memory_;
  base::Fd listener_;
  base::Fd client_;
  base::Fd client_process_;  // pidfd; a child forked by the client keeps the client's socket open
  Time hello_until_;
  Peer peer_ = Peer::kNotYet;
  uint64_t clients_ = 0;
  uint32_t complaints_ = 0;
  bool told_pidfd_ = false;
  bool told_accept_ = false;
};

/// @return 0, or -errno, told on stderr.
[[nodiscard]] int attach_by(const name::Listen& listen, const CardSpec& spec,
                            std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
