/// @file
/// The connection of a card of rio-cardsim to its host: the BAR, the host's memory, interrupts. One
/// implementation for each kind.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "fpga/cardsim/card_spec.hpp"
#include "fpga/cardsim/shared_bar.hpp"
#include "fpga/model/card.hpp"

namespace rio::cardsim {

/// Counts of an attachment, for the report.
struct AttachmentCounts {
  uint64_t peers = 0;           ///< peers that have connected
  std::vector<uint64_t> irqs;   ///< raised, by vector; empty: there are no interrupts
  std::vector<uint64_t> rings;  ///< doorbells of the host, by vector; empty: there are none
};

/// Connects a card with its host. Used by the thread of the service loop only.
class Attachment {
 public:
  /// State of the other end.
  enum class Peer : uint8_t { kNotYet, kHere, kGone };

  virtual ~Attachment() = default;

  /// Memory of the BAR, of the requested size; differs after renew().
  [[nodiscard]] uint8_t* bar() { return bar_.va(); }
  [[nodiscard]] virtual model::HostMemory& memory() = 0;
  /// Interrupts of the card; null: it has none.
  [[nodiscard]] virtual model::IrqSink* irqs() { return nullptr; }

  /// Called before each step of the card: find out which memory the host has unmapped.
  virtual void begin_turn() {}
  /// Handle sockets; never waits.
  virtual void serve() = 0;
  [[nodiscard]] Peer peer() const { return peer_; }
  /// Make a BAR of zeros for the next peer: the last one has gone, and the card with it. @return 0,
  /// -errno.
  [[nodiscard]] virtual int renew() = 0;
  /// Add descriptors that wake a sleeping service loop.
  virtual void add_wake_fds(std::vector<pollfd>* /*fds*/) const {}
  [[nodiscard]] virtual AttachmentCounts counts() const { return {peers_, {}, {}}; }

 protected:
  void welcome_peer() {
    peer_ = Peer::kHere;
    ++peers_;
  }

  SharedBar bar_;
  Peer peer_ = Peer::kNotYet;
  uint64_t peers_ = 0;
};

// Make an attachment; then its socket listens, or its file exists. @return 0, or -errno, reported
// on stderr.

/// For ivshmem-plain: QEMU maps the BAR's file, too, and the guest polls.
[[nodiscard]] int attach(const name::Plain& plain, const CardSpec& spec,
                         std::unique_ptr<Attachment>* out);
/// For ivshmem-doorbell: rio-cardsim is the ivshmem server, and raises MSI-X.
[[nodiscard]] int attach(const name::Doorbell& doorbell, const CardSpec& spec,
                         std::unique_ptr<Attachment>* out);
/// For a program on this machine.
[[nodiscard]] int attach(const name::Listen& listen, const CardSpec& spec,
                         std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
