/// @file
/// A switch or an endpoint of a fabric.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/frame_ring.hpp"
#include "fpga/model/host_memory.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/switched/switch_registers.hpp"

namespace rio::wire::switched {

/// Rings between a card and the fabric.
struct Socket {
  /// @param bytes of each.
  explicit Socket(uint32_t bytes)
      : in_requests(bytes), in_responses(bytes), out_requests(bytes), out_responses(bytes) {}

  model::RingBox in_requests;  ///< to the card
  model::RingBox in_responses;
  model::RingBox out_requests;  ///< from the card
  model::RingBox out_responses;
};

/// The model card at an endpoint where no other card is plugged in. It has no host: it only answers
/// maintenance requests. Stepped by one thread at a time.
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

/// A device. Guarded by the fabric's lock, except for link_up.
struct Device {
  DeviceSpec spec;
  std::vector<std::optional<PortName>> peers;  ///< by port
  std::optional<SwitchRegisters> registers;    ///< switches
  std::unique_ptr<Socket> socket;              ///< endpoints
  std::unique_ptr<EndpointCard> card;          ///< of an endpoint where no card is plugged in
  bool plugged = false;                        ///< a card is plugged in
  bool busy = false;                           ///< its own card has frames to take or to send
  std::atomic<bool> link_up{false};            ///< of an endpoint
};

}  // namespace rio::wire::switched
