/// @file
/// What connects the cards of rio-cardsim: one hears itself, two have a cable, any number a fabric.
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
  /// @param topology of a fabric, in which each card is where its at= says; empty: none.
  /// @return 0, or -errno, told on stderr: too many cards, at= missing, given twice or without a
  /// fabric, no such endpoint, or as wire::switched::load_topology().
  [[nodiscard]] static int create(const std::vector<CardSpec>& specs, const std::string& topology,
                                  std::unique_ptr<Wiring>* out);

  /// @param card index into `specs`. The result outlives the object, if need be.
  [[nodiscard]] SimCard::Plug plug(size_t card) const;
  /// Read the topology file again: devices appear, go, fall silent or answer again as it says now.
  /// All else in it must be as it was, or the fabric stays as it is, which is told on stderr. By
  /// the thread that steps the cards.
  void reload();
  /// Null: there is none.
  [[nodiscard]] wire::switched::Fabric* fabric() const { return fabric_.get(); }

 private:
  Wiring() = default;
  [[nodiscard]] int change(const wire::switched::DeviceSpec& wanted,
                           wire::switched::DeviceSpec* now);
  [[nodiscard]] int check(const std::vector<CardSpec>& specs, const std::string& topology) const;

  std::shared_ptr<wire::switched::Fabric> fabric_;
  std::string path_;                   // of the fabric's file
  wire::switched::Topology topology_;  // as it is now
  std::shared_ptr<model::Cable> cable_;
  std::vector<std::string> at_;
};

}  // namespace rio::cardsim
