/// @file
/// A card of a port, with what the port has for each card.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/msg/buffers.hpp"
#include "lib/msg/card_health.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/failures.hpp"
#include "lib/msg/intake.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/rail_stats.hpp"
#include "lib/msg/receive_queues.hpp"
#include "lib/msg/registrations.hpp"
#include "lib/msg/send_slots.hpp"
#include "lib/msg/shown_memory.hpp"
#include "lib/msg/silence.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Used only on the port's thread. The objects refer to each other and to those of the port.
struct Rail {
  /// @param number of the rail in its port, below kRailsMax.
  Rail(uint32_t number, Endpoint& card, const PortObjects& port);
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  /// Allocate the slots for messages to send, and post receive buffers. @return 0, -ENOTSUP,
  /// -ENOMEM, -errno.
  [[nodiscard]] int start();
  /// Allocate what large data needs. @return 0, -ENOMEM.
  [[nodiscard]] int start_large();
  /// A number that changes with everything that comes from the card.
  [[nodiscard]] uint64_t activity() const;
  /// Add what the card's queues have counted. @param out of this rail.
  void add_counts(RailStats* out) const;
  Endpoint& endpoint;
  std::unique_ptr<Dma> dma;  ///< null: the card has no DMA queue

  // Used for each message.
  Outbox outbox;
  Intake intake;
  BufferRing buffers;

  // Used less often.
  uint32_t index;
  CardHealth health;
  Registrations memory;
  Silence silence;
  Failures failures;
  ShownMemory shown;
  SendSlots slots;       ///< after start_large()
  ReceiveQueues queues;  ///< after start_large()
};

/// The rails of a port: the first one, which every port has, and others.
class Rails {
 public:
  Rails(Endpoint& first, const PortObjects& port) : first_(0, first, port) { all_[0] = &first_; }
  /// Add the next rail, up to kRailsMax.
  void add(Endpoint& card, const PortObjects& port) {
    others_.push_back(std::make_unique<Rail>(count_, card, port));
    all_[count_++] = others_.back().get();
  }

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] Rail& first() { return first_; }
  [[nodiscard]] const Rail& first() const { return first_; }
  /// @param index below count().
  [[nodiscard]] Rail& at(uint32_t index) const { return *all_[index]; }
  /// @return 0 while any card works; else as CardHealth::error().
  [[nodiscard]] int error() const {
    const int rc = first_.health.error();
    return rc == 0 || count_ == 1 ? rc : error_of_all();
  }
  [[nodiscard]] Rail* const* begin() const { return all_.data(); }
  [[nodiscard]] Rail* const* end() const { return all_.data() + count_; }

 private:
  [[nodiscard]] int error_of_all() const;

  Rail first_;
  std::vector<std::unique_ptr<Rail>> others_;
  uint32_t count_ = 1;
  std::array<Rail*, kRailsMax> all_{};
};

}  // namespace rio::msg
