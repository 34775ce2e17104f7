/// @file
/// The model card at an endpoint where no other card is plugged in. It has no host: it only answers
/// maintenance requests.
#pragma once

#include <memory>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/dma_table.hpp"

namespace rio::wire::switched {

/// A card without a host. Stepped by one thread at a time.
class EndpointCard {
 public:
  /// Create a card. @param clock outlives the card. @return null: out of memory.
  [[nodiscard]] static std::unique_ptr<EndpointCard> create(std::unique_ptr<model::Wire> wire,
                                                            model::Clock* clock);
  void step() { card_->step(); }

 private:
  struct alignas(4096) Page {
    uint8_t bytes[4096];
  };
  EndpointCard() = default;

  std::vector<Page> bar_;
  model::DmaTable memory_;  // empty: the card reaches no memory
  std::unique_ptr<model::Card> card_;
};

}  // namespace rio::wire::switched
