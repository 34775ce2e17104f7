/// @file
/// The fabric's implementation, shared by fabric.cc (devices) and carry.cc (frames).
#pragma once

#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "fpga/wire/switched/device.hpp"
#include "fpga/wire/switched/fabric.hpp"

namespace rio::wire::switched {

/// The place where a frame ends up.
struct Stop {
  enum Kind : uint8_t { kEndpoint, kSwitch, kUnrouted, kLooped, kAbsent };
  Kind kind;
  size_t device = 0;
  uint32_t port = 0;  ///< by which it arrived
  uint32_t hops = 0;  ///< that are left
};
class FabricImpl final : public Fabric, public std::enable_shared_from_this<FabricImpl> {
 public:
  FabricImpl(Topology topology, std::unique_ptr<model::Clock> clock);

  [[nodiscard]] int build();
  int plug(const std::string& endpoint, std::unique_ptr<model::Wire>* out) override;
  int set_device(const std::string& name, bool present) override;
  int set_silent(const std::string& name, bool silent) override;
  FabricCounts counts() override;

  /// Move frames; returns at once if another thread is doing it.
  void pump();
  void unplug(Device& device);

 private:
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
