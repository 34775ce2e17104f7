/// @file
/// A bus with a card that lives in a rio-cardsim process.
#pragma once

#include <memory>

#include "fpga/name/card_name.hpp"
#include "pmd/bus/bus.hpp"

namespace rio::pmd {

/// Open such a card. The bus is as a PCI bus: nothing of the card runs in this process, so there
/// are no hooks, and interrupts work. Memory of the card's users is shared memory that the bus
/// makes; the program's own cannot be shown to another process. A rio-cardsim that dies is a card
/// that is gone. Control path, one thread at a time. A process that was forked since has no card:
/// it is its parent's. @return 0; -ENOENT, -ECONNREFUSED (no server); -EBUSY (has a client
/// already); -ETIMEDOUT; -EPROTO (no rio-cardsim, or of another release); -EAGAIN (no thread).
/// Logged.
[[nodiscard]] int open_sim_bus(const name::Sim& card, std::unique_ptr<Bus>* out);

}  // namespace rio::pmd
