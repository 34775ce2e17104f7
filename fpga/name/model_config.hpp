/// @file
/// Converts the keys of a card's name into the configuration of the model.
#pragma once

#include "fpga/model/config.hpp"
#include "fpga/name/card_name.hpp"

namespace rio::name {

[[nodiscard]] inline model::Config model_config(const Model& said) {
  model::Config config;
  config.queue_pairs = said.queue_pairs;
  config.vfs = said.vfs;
  config.exact = said.exact;
  config.quirk_last_at_256 = config.quirk_last_full_256 = said.quirks;
  if (!said.quirks) {
    config.shared_addr_log2 = config.dedicated_addr_log2 = config.dedicated_size_log2 = 3;
  }
  config.faults.seed = said.fault_seed;
  config.faults.rate = said.fault_rate;
  config.pcie_seed = said.pcie_seed;
  config.early_status = said.early_status;
  config.torn = said.torn;
  config.flights = said.flights;
  config.resting = said.resting;
  config.rx_contexts = said.rx_contexts;
  config.poisoned = said.poisoned;
  config.pass_over = said.pass_over;
  config.push_slots_log2 = said.push_slots_log2;
  config.barrier = said.barrier;
  config.early_notices = said.early_notices;
  config.rail = said.rail;
  return config;
}

}  // namespace rio::name
