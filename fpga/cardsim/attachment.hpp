/// @file
/// How a card of rio-cardsim is reached: its BAR, the host's memory, interrupts. One implementation
/// for each kind.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "fpga/cardsim/card_spec.hpp"
#include "fpga/model/card.hpp"

namespace rio::cardsim {

/// Counts of an attachment, for the report.
struct AttachmentCounts {
  uint64_t iommu_faults = 0;    ///< lookups of bus addresses that the host has not mapped
  uint64_t iommu_first = 0;     ///< the first such address, if there was one
  uint64_t peers = 0;           ///< that came
  std::vector<uint64_t> irqs;   ///< raised, by vector; empty: no interrupts
  std::vector<uint64_t> rings;  ///< doorbells of the host, by vector; empty: none are heard
};

/// Used by the thread of the service loop only.
class Attachment {
 public:
  /// State of the other end.
  enum class Peer : uint8_t { kNotYet, kHere, kGone };

  virtual ~Attachment() = default;

  /// Memory of the BAR, of the size that was asked for; another one after renew().
  [[nodiscard]] virtual uint8_t* bar() = 0;
  [[nodiscard]] virtual model::HostMemory& memory() = 0;
  /// Null: no interrupts.
  [[nodiscard]] virtual model::IrqSink* irqs() { return nullptr; }

  /// Before each step of the card: find out what the host has unmapped.
  virtual void begin_turn() {}
  /// Look at sockets; never waits.
  virtual void serve() {}
  [[nodiscard]] virtual Peer peer() const = 0;
  /// A peer has gone, and the card with it: a BAR of zeros for the next one. @return 0, -errno.
  [[nodiscard]] virtual int renew() = 0;
  /// Adds what may wake a sleeping service loop.
  virtual void add_wake_fds(std::vector<pollfd>* fds) const { static_cast<void>(fds); }
  [[nodiscard]] virtual AttachmentCounts counts() const = 0;
};

/// Make what `spec` says; sockets listen and files exist afterwards. @return 0, or -errno, told on
/// stderr.
[[nodiscard]] int attach(const CardSpec& spec, std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
