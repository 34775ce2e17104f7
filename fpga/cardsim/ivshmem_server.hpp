/// @file
/// The server's side of the ivshmem protocol, for one guest and the card.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace rio::cardsim {

/// Sends 8-byte little-endian numbers over a stream socket, each with at most one descriptor:
/// version 0; the guest's number; -1 with the BAR; the card's number with an eventfd for each
/// vector (the guest rings them); the guest's number with an eventfd for each vector (they raise
/// its MSI-X). QEMU: docs/specs/ivshmem-spec. One thread.
class IvshmemServer {
 public:
  static constexpr int64_t kCardPeer = 0;
  static constexpr int64_t kGuestPeer = 1;
  enum class Peer : uint8_t { kNotYet, kHere, kGone };

  /// Listen. @return 0, or -errno, reported on stderr.
  [[nodiscard]] int open(const std::string& socket_path);
  /// Removes the socket.
  ~IvshmemServer();
  IvshmemServer() = default;
  IvshmemServer(const IvshmemServer&) = delete;
  IvshmemServer& operator=(const IvshmemServer&) = delete;

  /// Accept a waiting guest, or check whether the connected one has gone. A second one is turned
  /// away. @param bar, irqs, rings descriptors for the guest; they stay the caller's.
  void serve(int bar, const std::vector<int>& irqs, const std::vector<int>& rings);
  /// Wait for another guest.
  void forget() { peer_ = Peer::kNotYet; }

  [[nodiscard]] Peer peer() const { return peer_; }
  [[nodiscard]] uint64_t guests() const { return guests_; }
  void add_wake_fds(std::vector<pollfd>* fds) const;

 private:
  [[nodiscard]] int greet(const base::Fd& guest, int bar, const std::vector<int>& irqs,
                          const std::vector<int>& rings) const;
  void accept(int bar, const std::vector<int>& irqs, const std::vector<int>& rings);
  void check_guest();

  std::string path_;
  base::Fd listener_;
  base::Fd guest_;
  Peer peer_ = Peer::kNotYet;
  uint64_t guests_ = 0;
  bool told_ = false;
};

}  // namespace rio::cardsim
