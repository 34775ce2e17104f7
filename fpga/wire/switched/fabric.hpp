/// @file
/// A fabric of switches and endpoints within one process, made from a topology. Start here.
///
/// Cards plug into endpoints (plug()); each other endpoint has a model card that the fabric steps.
/// A frame goes from its sender's ring to its receiver's in one go, through all switches on the way
/// by their route tables of that moment. If the receiver has no room the frame stays, and blocks
/// those behind it. So the fabric has no queues that could wait for each other in a circle.
/// Responses have rings of their own, and never wait behind requests.
/// docs/decisions/0011-switched-fabric.md
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fpga/model/ends.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/switched/topology.hpp"

namespace rio::wire::switched {

/// Counts of frames by their fate, since the fabric was made.
struct FabricCounts {
  uint64_t delivered = 0;  ///< to an endpoint
  uint64_t answered = 0;   ///< maintenance requests answered by a switch
  uint64_t unrouted = 0;   ///< dropped: a switch had no route
  uint64_t looped = 0;     ///< dropped: the routes form a circle
  uint64_t absent = 0;     ///< dropped: no card there, or a silent one
  uint64_t malformed = 0;  ///< dropped: not a frame that a card may send
  uint64_t lost = 0;       ///< dropped by Topology::loss_rate
};

/// A fabric. Thread-safe, except for Wire's rules about the thread that steps a card.
class Fabric {
 public:
  /// Create a fabric. @param topology sound, as from parse_topology(). @param clock of the fabric's
  /// own cards; null: this machine's time. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Topology topology, std::unique_ptr<model::Clock> clock,
                                  std::shared_ptr<Fabric>* out);
  virtual ~Fabric() = default;

  /// Plug a card into an endpoint, in place of the fabric's own card. The fabric lives as long as
  /// the wire; when the wire is destroyed, the endpoint gets a fresh card of the fabric's own. A
  /// step of the card moves frames in the whole fabric. @return 0, -ENOENT (no such endpoint),
  /// -EBUSY (plugged in already).
  [[nodiscard]] virtual int plug(const std::string& endpoint,
                                 std::unique_ptr<model::Wire>* out) = 0;
  /// Remove a device, or put it back. A device that comes back has lost its locks, tags and routes.
  /// Neighbours see the link change, and switches among them send port-writes. @return 0, -ENOENT.
  [[nodiscard]] virtual int set_device(const std::string& name, bool present) = 0;
  /// Make a device silent with its link up, or let it answer again. @return 0, -ENOENT.
  [[nodiscard]] virtual int set_silent(const std::string& name, bool silent) = 0;

  [[nodiscard]] virtual FabricCounts counts() = 0;
};

}  // namespace rio::wire::switched
