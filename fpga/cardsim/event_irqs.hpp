/// @file
/// Eventfds between a card and its host, one for each vector.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.hpp"
#include "fpga/model/card.hpp"

namespace rio::cardsim {

/// Interrupts of a card as eventfds, counted; or doorbells the other way. Never waits: an
/// eventfd's O_NONBLOCK belongs to both sides, and QEMU takes it away for a moment after it was
/// given one. One thread.
class EventIrqs final : public model::IrqSink {
 public:
  /// @return 0, or -errno.
  [[nodiscard]] int open(uint32_t vectors);
  void raise(uint32_t vector) override;
  /// @return how often the other side has raised `vector`, below vectors, since the last call.
  [[nodiscard]] uint64_t take(uint32_t vector);

  /// The object's.
  [[nodiscard]] std::vector<int> fds() const;
  [[nodiscard]] const std::vector<uint64_t>& raised() const { return raised_; }

 private:
  std::vector<base::Fd> fds_;
  std::vector<uint64_t> raised_;
};

}  // namespace rio::cardsim
