/// @file
/// The program's side of a card that lives in a rio-cardsim process.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "fpga/cardsim/listen_protocol.hpp"

namespace rio::pmd {

/// A connection (fpga/cardsim/listen_protocol.hpp). When the server goes, its BAR would stay as it
/// was: a thread that sleeps on the socket then makes it read all ones, as a card does that has
/// left its bus, and wakes threads that wait for an interrupt. Control path, one thread at a time.
class SimClient {
 public:
  /// @param wait_ms how long to wait for a server that is just starting, 0 to 60000.
  /// @return 0; -ENOENT, -ECONNREFUSED (no server); -EBUSY (has a client already); -ETIMEDOUT;
  /// -EPROTO (no rio-cardsim, or of another release); -EAGAIN (no thread). Logged.
  [[nodiscard]] static int open(const std::string& socket_path, uint32_t wait_ms,
                                std::unique_ptr<SimClient>* out);
  ~SimClient();
  SimClient(const SimClient&) = delete;
  SimClient& operator=(const SimClient&) = delete;

  [[nodiscard]] uint8_t* bar() const { return bar_; }
  [[nodiscard]] size_t bar_bytes() const { return bar_bytes_; }
  /// eventfd, this object's; -ENOTSUP: no such vector.
  [[nodiscard]] int irq_fd(uint32_t vector) const;

  /// Let the card use a sealed memfd at `iova`. @return 0; -ENODEV: the server has gone, or this
  /// process was forked since open(), and the card is its parent's;
  /// -ETIMEDOUT: it does not answer; what it answers. Logged.
  [[nodiscard]] int map(int memfd, uint64_t iova, uint64_t len_bytes);
  /// The card uses it no more when this returns 0 or -ENODEV. @return as map().
  [[nodiscard]] int unmap(uint64_t iova);

 private:
  explicit SimClient(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] int connect(uint32_t wait_ms);
  [[nodiscard]] int greet();
  [[nodiscard]] int take_bar(const cardsim::protocol::Reply& reply);
  [[nodiscard]] int ask(const cardsim::protocol::Request& request, int fd,
                        cardsim::protocol::Reply* reply, std::vector<base::Fd>* fds);
  [[nodiscard]] int ask_for(const cardsim::protocol::Request& request, int fd, const char* what);
  [[nodiscard]] int watch();
  void await_end();
  void card_is_gone();

  /// Whether this process opened it, rather than being forked since: a forked child has no watcher
  /// and a BAR that reads all ones, and must not speak in its parent's name.
  [[nodiscard]] bool is_ours() const { return owner_ == getpid(); }

  std::string path_;
  int owner_ = getpid();
  base::Fd socket_;
  uint8_t* bar_ = nullptr;
  size_t bar_bytes_ = 0;
  std::vector<base::Fd> fds_;  // the BAR, then an eventfd for each vector
  base::Fd stop_;
  std::jthread watcher_;
};

}  // namespace rio::pmd
