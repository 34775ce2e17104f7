/// @file
/// A bus with an emulated card on it: the only place where driver and model meet.
#pragma once

#include <memory>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/emu/emu_config.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::model {
class Card;
}

namespace rio::pmd {

/// Owns the card, its BAR, and its end of the wire.
class EmuBus : public Bus {
 public:
  /// @param memory null: memory of the process's own.
  /// @return -EINVAL (a queue pair that its board lacks), -EBUSY (wire has two ends already, a card
  /// is at the endpoint, or has the destID), -ENOENT (no such endpoint), -errno of the topology
  /// file or of joining a fabric, -ENOMEM, -EAGAIN (no thread).
  [[nodiscard]] static int create(const EmuConfig& config, std::shared_ptr<EmuMemory> memory,
                                  std::unique_ptr<EmuBus>* out);
  /// A bus onto a card that another process steps: `bar` is its BAR in memory that both share,
  /// `memory` the same memory. The hook does nothing.
  [[nodiscard]] static std::unique_ptr<EmuBus> attach(const DmaMemory& bar,
                                                      std::shared_ptr<EmuMemory> memory,
                                                      const std::string& name);

  /// Null for an attached bus. Thread-safe: step(), inject(); the rest under with_lock().
  [[nodiscard]] virtual model::Card* card() = 0;
  /// The BAR's memory, to hand to attach() in another process.
  [[nodiscard]] virtual const DmaMemory& bar_memory() const = 0;

 private:
  class Impl;
  EmuBus() = default;
};

}  // namespace rio::pmd
