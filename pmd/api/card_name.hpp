/// @file
/// What a card is called when it is opened: "emu:loop,qps=2", "sim:/run/card",
/// "shm:FABRIC,id=3", "udp:FABRIC,id=3,members=FILE",
/// "0000:03:00.0,reset=0".
#pragma once

#include <memory>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/bus/emu/sim_bus.hpp"
#include "pmd/bus/vfio/vfio_bus.hpp"

namespace rio {

/// A name, taken apart.
struct CardName {
  bool emulated = false;
  pmd::EmuConfig emu;              ///< emulated cards
  pmd::SimConfig sim;              ///< cards of rio-cardsim; for others the socket is empty
  std::string pci_address;         ///< others, "0000:03:00.0"
  pmd::vfio::VfioOptions options;  ///< others
};

/// Any thread. @return 0, or -EINVAL: no card's name, an unknown option, one given twice, a value
/// out of range; the log names it and what is allowed.
[[nodiscard]] int parse_card_name(const std::string& text, CardName* out);

/// Open the bus of a card by its name. Control path.
/// @return as parse_card_name(), EmuBus::create(), SimBus::open() and VfioBus::open().
[[nodiscard]] int open_bus(const std::string& name, std::unique_ptr<pmd::Bus>* out);

}  // namespace rio
