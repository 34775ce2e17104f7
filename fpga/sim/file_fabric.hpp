/// @file
/// A fabric from a topology file (docs/fabric.md) as a simulated network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/sim/hop.hpp"
#include "fpga/wire/switched/topology.hpp"

namespace rio::sim {

/// A fabric from a file. Its endpoints are the nodes, in the order of the file; switches follow.
/// Devices that are silent or not present are left out, with their links. A switch routes the
/// destIDs of its "routes" as they say, and all others by a shortest route, through the lowest
/// port. Immutable.
class FileFabric {
 public:
  /// @param error the error with its remedy; set on failure only.
  /// @return 0; -EINVAL: an endpoint cannot reach another one, a route leads nowhere or in a
  /// circle, or there is no endpoint.
  [[nodiscard]] static int create(const wire::switched::Topology& file, FileFabric* out,
                                  std::string* error);

  [[nodiscard]] uint32_t nodes() const { return nodes_; }
  [[nodiscard]] uint32_t devices() const { return static_cast<uint32_t>(names_.size()); }
  [[nodiscard]] uint32_t links() const { return static_cast<uint32_t>(links_.size()); }
  [[nodiscard]] bool has_link(uint32_t link) const { return link < links(); }
  [[nodiscard]] LinkRange links_from(uint32_t device) const {
    return {first_link_[device], first_link_[device + 1] - first_link_[device]};
  }
  [[nodiscard]] uint32_t from(uint32_t link) const { return links_[link].from; }
  /// Hot.
  [[nodiscard]] uint32_t to(uint32_t link) const { return links_[link].to; }
  [[nodiscard]] uint32_t reverse(uint32_t link) const { return links_[link].reverse; }
  /// Each packet crosses one link of class kFromNode; the others leave switches.
  static constexpr uint32_t kFromNode = 0;
  static constexpr uint32_t kFromSwitch = 1;
  [[nodiscard]] uint32_t link_class(uint32_t link) const {
    return from(link) < nodes_ ? kFromNode : kFromSwitch;
  }
  [[nodiscard]] uint32_t link_classes() const { return 2; }

  /// Hot. @return kNoLink: `at` is the destination.
  [[nodiscard]] uint32_t next_link(uint32_t at, uint32_t destination) const {
    if (at == destination) {
      return kNoLink;
    }
    return first_link_[at] + turns_[size_t{at} * nodes_ + destination];
  }
  [[nodiscard]] uint32_t diameter() const { return diameter_; }
  /// The device's number alone, since the file gives devices no places.
  [[nodiscard]] std::vector<uint32_t> coordinates(uint32_t device) const { return {device}; }

  [[nodiscard]] const std::string& name(uint32_t device) const { return names_[device]; }
  /// The file's "loss": its seed, and the chance of a packet to be lost on its way.
  [[nodiscard]] uint64_t loss_seed() const { return loss_seed_; }
  [[nodiscard]] double loss_rate() const { return loss_rate_; }

 private:
  struct Link {
    uint32_t from;
    uint32_t to;
    uint32_t reverse;
    uint32_t port;  ///< of `from`
  };

  void take_devices(const wire::switched::Topology& file);
  void take_links(const wire::switched::Topology& file);
  void route_to(uint32_t node);
  [[nodiscard]] int apply_routes(const wire::switched::Topology& file, std::string* error);
  [[nodiscard]] int check_routes(std::string* error);

  uint32_t nodes_ = 0;
  uint32_t diameter_ = 0;
  uint64_t loss_seed_ = 0;
  double loss_rate_ = 0.0;
  std::vector<std::string> names_;
  std::vector<size_t> in_file_;      ///< device to its index in the file
  std::vector<uint32_t> device_of_;  ///< index in the file to device
  std::vector<uint32_t> first_link_;
  std::vector<Link> links_;     ///< by device and port
  std::vector<uint8_t> turns_;  ///< device and destination to the link among the device's
};

}  // namespace rio::sim
