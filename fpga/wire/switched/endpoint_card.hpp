/// @file
/// The model card at an endpoint of a fabric where no other card is plugged in. It has no host: it
/// answers maintenance requests and nothing else.
#pragma once

#include <memory>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/dma_table.hpp"

namespace rio::wire::switched {

/// Stepped by one thread at a time.
class EndpointCard {
 public:
  /// @param clock outlives the card. @return null: out of memory.
  [[nodiscard]] static std::unique_ptr<EndpointCard> create(std::unique_ptr<model::Wire> wire,
                                                            model::Clock* clock);
  void step() { card_->step(); }

 private:
  struct alignas(4096) Page {
    uint8_t bytes[4096];
  };
  EndpointCard() = default;

  std::vector<Page> bar_;
  model::DmaTable memory_;  // empty: the card reaches none
  std::unique_ptr<model::Card> card_;
};

}  // namespace rio::wire::switched
