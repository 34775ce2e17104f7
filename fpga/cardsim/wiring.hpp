/// @file
/// Connects the cards of rio-cardsim: one hears itself, two share a cable, any number share a
/// fabric.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fpga/cardsim/card_spec.hpp"
#include "fpga/cardsim/sim_card.hpp"
#include "fpga/wire/switched/fabric.hpp"

namespace rio::cardsim {

class Wiring {
 public:
  /// Make the wires. @param topology file of a fabric, in which each card is at its at=; empty: no
  /// fabric. @return 0, or -errno, reported on stderr: too many cards, at= missing, given twice or
  /// without a fabric, no such endpoint, or as wire::switched::load_topology().
  [[nodiscard]] static int create(const std::vector<CardSpec>& specs, const std::string& topology,
                                  std::unique_ptr<Wiring>* out);

  /// The function that gives a card its end of the wire; it may outlive this object. @param card
  /// index into `specs`. @param at of that card.
  [[nodiscard]] SimCard::Plug plug(size_t card, const std::string& at) const;
  /// Read the topology file again: devices appear, go, fall silent or answer again as it says now.
  /// If anything else in it has changed, the fabric stays as it is, and stderr says so. For the
  /// thread that steps the cards.
  void reload();
  /// The fabric; null: there is none.
  [[nodiscard]] wire::switched::Fabric* fabric() const { return fabric_.get(); }

 private:
  Wiring() = default;
  [[nodiscard]] int change(const wire::switched::DeviceSpec& wanted,
                           wire::switched::DeviceSpec* now);

  std::shared_ptr<wire::switched::Fabric> fabric_;
  std::string path_;                   // of the fabric's file
  wire::switched::Topology topology_;  // as it is now
  std::shared_ptr<model::Cable> cable_;
};

}  // namespace rio::cardsim
