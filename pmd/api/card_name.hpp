/// @file
/// Cards by their names, for programs: "emu:loop,qps=2", "shm:FABRIC,id=3", "0000:03:00.0,reset=0".
/// docs/cards.md is the grammar, fpga/name its parser.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fpga/name/card_name.hpp"
#include "pmd/bus/bus.hpp"

namespace rio::pmd::vfio {
struct PciPaths;
}

namespace rio {

/// Any thread. @return 0, or -EINVAL: no card's name, an unknown key, one given twice, a value out
/// of range; the log names it and what is allowed.
[[nodiscard]] int parse_card_name(const std::string& text, name::CardName* out);

/// Divide a name into those of its cards: "emu:x+emu:y" names two, which a program uses as one.
/// Any thread. @return 0, or -EINVAL: as parse_card_name(), too many cards, or one named twice; the
/// log names it.
[[nodiscard]] int card_names(const std::string& text, std::vector<std::string>* out);

/// Open the bus of a card by its name. Control path.
/// @return as parse_card_name(), EmuBus::create(), open_sim_bus() and open_vfio_bus().
[[nodiscard]] int open_bus(const std::string& name, std::unique_ptr<pmd::Bus>* out);
/// Open the bus of a card by its parsed name. @param paths where the system's files are.
[[nodiscard]] int open_bus(const name::CardName& card, const pmd::vfio::PciPaths& paths,
                           std::unique_ptr<pmd::Bus>* out);

}  // namespace rio
