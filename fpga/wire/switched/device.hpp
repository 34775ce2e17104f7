/// @file
/// A switch or an endpoint of a fabric.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "fpga/model/ring_box.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/switched/endpoint_card.hpp"
#include "fpga/wire/switched/switch_registers.hpp"

namespace rio::wire::switched {

/// Rings between a card and the fabric.
struct Socket {
  Socket(uint32_t request_bytes, uint32_t response_bytes)
      : in_requests(request_bytes),
        in_responses(response_bytes),
        out_requests(request_bytes),
        out_responses(response_bytes) {}

  model::RingBox in_requests;  ///< to the card
  model::RingBox in_responses;
  model::RingBox out_requests;  ///< from the card
  model::RingBox out_responses;
};

/// Guarded by the fabric's lock, but for link_up.
struct Device {
  DeviceSpec spec;
  std::vector<std::optional<PortName>> peers;  ///< by port
  std::optional<SwitchRegisters> registers;    ///< switches
  std::unique_ptr<Socket> socket;              ///< endpoints
  std::unique_ptr<EndpointCard> card;          ///< of endpoints where no card is plugged in
  bool plugged = false;                        ///< a card is
  bool busy = false;                           ///< its own card has frames to take or to give
  std::atomic<bool> link_up{false};            ///< endpoints
};

}  // namespace rio::wire::switched
