/// @file
/// Wires of emulated cards: to themselves, to others in this process, to processes and machines.
#pragma once

#include <memory>
#include <string>

#include "base/shared_memory.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/member.hpp"
#include "pmd/bus/emu/emu_config.hpp"

namespace rio::pmd {

/// A card's end of its wire.
struct Joined {
  std::shared_ptr<void> plug{};  ///< destroy it after the wire: then its place is free again
  std::unique_ptr<model::Wire> wire;
  wire::Member* member = nullptr;  ///< the wire, if it leads out of this process
  std::string name;                ///< of the card, for messages: "emu:pair0/0", "shm:lab/3"
  uint32_t queue_pairs = 1;        ///< that the card has
  bool shows_memory = false;       ///< partners may map the card's memory
};

/// Join the wire that a card is configured for. The log says what is wrong. Control path.
/// @param areas of the card's memory, which other processes may map; null: none. @return -EBUSY:
/// the cable has two ends already; else as load_topology(), Fabric::plug(), ShmWire::join(),
/// UdpWire::join() and RelayWire::join().
[[nodiscard]] int join(const EmuConfig& config, std::shared_ptr<base::ReadableAreas> areas,
                       Joined* out);

}  // namespace rio::pmd
