/// @file
/// A fabric of switches and endpoints within one process, made from a topology. Start here.
///
/// Cards plug into endpoints (plug()); at each other endpoint there is a model card that the fabric
/// steps. A frame goes from its sender's ring to its receiver's in one go, through all switches on
/// the way as their route tables say at that moment; where the receiver has no room it stays where
/// it is and holds up what is behind it. So there is no queue within the fabric, and no circle of
/// queues that wait for each other. Responses have rings of their own, and never wait behind
/// requests. docs/decisions/0011-switched-fabric.md
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fpga/model/clock.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/switched/topology.hpp"

namespace rio::wire::switched {

/// Counts of frames by their fate, since the fabric was made.
struct FabricCounts {
  uint64_t delivered = 0;  ///< to an endpoint
  uint64_t answered = 0;   ///< maintenance requests, by a switch
  uint64_t unrouted = 0;   ///< dropped: a switch had no route
  uint64_t looped = 0;     ///< dropped: the routes go round in a circle
  uint64_t absent = 0;     ///< dropped: no card there, or a silent one
  uint64_t malformed = 0;  ///< dropped: no frame that a card may send
  uint64_t lost = 0;       ///< dropped by Topology::loss_rate
};

/// Thread-safe, but for what Wire says of the thread that steps a card.
class Fabric {
 public:
  /// @param topology sound, as from parse_topology(). @param clock of the fabric's own cards; null:
  /// this machine's time. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Topology topology, std::unique_ptr<model::Clock> clock,
                                  std::shared_ptr<Fabric>* out);
  virtual ~Fabric() = default;

  /// Plug a card into an endpoint, in place of the fabric's own. The fabric lives as long as the
  /// wire; when that goes, a fresh card of the fabric's own comes back. A step of the card moves
  /// frames all over the fabric. @return 0, -ENOENT (no such endpoint), -EBUSY (plugged in
  /// already).
  [[nodiscard]] virtual int plug(const std::string& endpoint,
                                 std::unique_ptr<model::Wire>* out) = 0;
  /// A device goes, or comes back. One that comes back has forgotten all: locks, tags, routes.
  /// Neighbours see the link, and switches among them send port-writes. @return 0, -ENOENT.
  [[nodiscard]] virtual int set_device(const std::string& name, bool present) = 0;
  /// A device stops answering with its link up, or answers again. @return 0, -ENOENT.
  [[nodiscard]] virtual int set_silent(const std::string& name, bool silent) = 0;

  [[nodiscard]] virtual FabricCounts counts() = 0;
};

}  // namespace rio::wire::switched
