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
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "fpga/model/ends.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/switched/device.hpp"
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

/// The place where a frame ends up.
struct Stop {
  enum Kind : uint8_t { kEndpoint, kSwitch, kUnrouted, kLooped, kAbsent };
  Kind kind;
  size_t device = 0;
  uint32_t port = 0;  ///< by which it arrived
  uint32_t hops = 0;  ///< that are left
};

/// A fabric. Thread-safe, except for Wire's rules about the thread that steps a card.
class Fabric : public std::enable_shared_from_this<Fabric> {
 public:
  /// Create a fabric. @param topology sound, as from parse_topology(). @param clock of the fabric's
  /// own cards; null: this machine's time. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Topology topology, std::unique_ptr<model::Clock> clock,
                                  std::shared_ptr<Fabric>* out);

  /// Plug a card into an endpoint, in place of the fabric's own card. The fabric lives as long as
  /// the wire; when the wire is destroyed, the endpoint gets a fresh card of the fabric's own. A
  /// step of the card moves frames in the whole fabric. @return 0, -ENOENT (no such endpoint),
  /// -EBUSY (plugged in already).
  [[nodiscard]] int plug(const std::string& endpoint, std::unique_ptr<model::Wire>* out);
  /// Remove a device, or put it back. A device that comes back has lost its locks, tags and routes.
  /// Neighbours see the link change, and switches among them send port-writes. @return 0, -ENOENT.
  [[nodiscard]] int set_device(const std::string& name, bool present);
  /// Make a device silent with its link up, or let it answer again. @return 0, -ENOENT.
  [[nodiscard]] int set_silent(const std::string& name, bool silent);

  [[nodiscard]] FabricCounts counts();

  // For its wires.
  /// Move frames; returns at once if another thread is doing it.
  void pump();
  void unplug(Device& device);

 private:
  Fabric(Topology topology, std::unique_ptr<model::Clock> clock);
  [[nodiscard]] int build();
  [[nodiscard]] Device* find(const std::string& name);
  [[nodiscard]] int own_card(Device& device);
  void preset(Device& device, uint32_t offset, uint32_t value);
  void show_link(Device& device, bool tell);
  void tell_port(Device& device, uint32_t port);

  void turn(Device& device);
  void work_own_cards();
  void drain(Device& from, model::FrameReader& reader, bool response);
  [[nodiscard]] bool carry(Device& from, const model::Frame& head, const uint8_t* payload);
  [[nodiscard]] bool deliver(const Stop& stop, const model::Frame& head, const uint8_t* payload);
  [[nodiscard]] bool answer(const Stop& stop, const model::Frame& head, const uint8_t* payload);
  void access(SwitchRegisters& registers, uint32_t in_port, const model::Frame& head,
              const uint8_t* payload, uint8_t* words);
  [[nodiscard]] Stop follow(PortName from, const model::Frame& head) const;
  void count(Stop::Kind kind);
  [[nodiscard]] bool loses() { return topology_.loss_rate > 0 && lost_(random_); }

  std::mutex mutex_;
  Topology topology_;
  std::unique_ptr<model::Clock> clock_;
  std::vector<Device> devices_;
  uint32_t switches_ = 0;
  std::vector<Device*> plugged_;
  std::vector<Device*> busy_;
  std::mt19937_64 random_;
  std::bernoulli_distribution lost_;
  FabricCounts counts_;
};

}  // namespace rio::wire::switched
