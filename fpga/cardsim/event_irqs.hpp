/// @file
/// Eventfds between a card and its host, one for each vector.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.hpp"
#include "fpga/model/card.hpp"

namespace rio::cardsim {

/// Interrupts of a card as eventfds; or doorbells in the other direction. Counted. Never waits:
/// both sides share an eventfd's O_NONBLOCK, and QEMU clears it for a moment after it has received
/// one. One thread.
class EventIrqs final : public model::IrqSink {
 public:
  /// Create the eventfds. @return 0, or -errno.
  [[nodiscard]] int open(uint32_t vectors);
  void raise(uint32_t vector) override;
  /// Count what the other side has raised since the last call.
  void take();

  /// The descriptors, which stay this object's.
  [[nodiscard]] std::vector<int> fds() const;
  /// How often each vector was raised, by either side.
  [[nodiscard]] const std::vector<uint64_t>& raised() const { return raised_; }

 private:
  std::vector<base::Fd> fds_;
  std::vector<uint64_t> raised_;
};

}  // namespace rio::cardsim
