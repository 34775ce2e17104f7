/// @file
/// Wires of emulated cards to other processes and machines.
#pragma once

#include <memory>
#include <string>

#include "fpga/wire/member.hpp"
#include "pmd/bus/emu/emu_bus.hpp"

namespace rio::pmd {

/// What cards of a wire to others are called, without their destID: "shm:FABRIC". Any thread.
/// @return empty: the card has another wire.
[[nodiscard]] std::string kind_of(const EmuConfig& config);

/// Join it. The log says what is wrong. Control path.
/// @return as ShmWire::join(), UdpWire::join() and RelayWire::join().
[[nodiscard]] int join(const EmuConfig& config, std::unique_ptr<wire::Member>* out);

}  // namespace rio::pmd
