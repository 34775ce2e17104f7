#include "fpga/wire/switched/device.hpp"

namespace rio::wire::switched {

std::unique_ptr<EndpointCard> EndpointCard::create(std::unique_ptr<model::Wire> wire,
                                                   model::Clock* clock) {
  model::Config config;
  config.exact = true;  // checks its link in each step: it is stepped only when a frame arrives
  config.tx_contexts = config.rx_contexts = 1;
  std::unique_ptr<EndpointCard> made(new EndpointCard);
  made->bar_.resize(model::Card::bar_bytes(config.queue_pairs) / sizeof(Page));
  model::Ends ends;
  ends.bar = made->bar_.data()->bytes;
  ends.memory = &made->memory_;
  ends.clock = clock;
  ends.wire = std::move(wire);
  if (model::Card::create(config, std::move(ends), &made->card_) != 0) {
    return nullptr;
  }
  return made;
}

}  // namespace rio::wire::switched
