/// @file
/// The shape of a simulated network: devices, links, and the routes from node to node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fpga/sim/fat_tree.hpp"
#include "fpga/sim/file_fabric.hpp"
#include "fpga/sim/grid.hpp"

namespace rio::sim {

/// Any shape, made from a text. Devices are numbered from 0: first nodes, which send and receive,
/// then switches. Links have a direction. Immutable.
class NetworkTopology {
 public:
  using Shape = std::variant<Grid, FatTree, FileFabric>;

  /// Make a topology from `torus:8x4x4`, `mesh:10x10`, `fat-tree:ARITYxLEVELS` or `file:PATH`.
  /// @param error the error with its remedy; set on failure only.
  /// @return 0, -EINVAL, -E2BIG: too many links, or -errno of the file.
  [[nodiscard]] static int create(std::string_view text, NetworkTopology* out, std::string* error);
  /// A network of one node.
  NetworkTopology() = default;
  explicit NetworkTopology(Shape shape) : shape_(std::move(shape)) {}

  /// The shape itself: for loops over many links, to visit it once, outside of the loop.
  [[nodiscard]] const Shape& shape() const { return shape_; }

  [[nodiscard]] uint32_t nodes() const {
    return std::visit([](const auto& shape) { return shape.nodes(); }, shape_);
  }
  [[nodiscard]] uint32_t devices() const {
    return std::visit([](const auto& shape) { return shape.devices(); }, shape_);
  }
  /// Numbers of links are below this; some numbers have no link.
  [[nodiscard]] uint32_t links() const {
    return std::visit([](const auto& shape) { return shape.links(); }, shape_);
  }
  [[nodiscard]] bool has_link(uint32_t link) const {
    return std::visit([&](const auto& shape) { return shape.has_link(link); }, shape_);
  }
  [[nodiscard]] LinkRange links_from(uint32_t device) const {
    return std::visit([&](const auto& shape) { return shape.links_from(device); }, shape_);
  }
  [[nodiscard]] uint32_t from(uint32_t link) const {
    return std::visit([&](const auto& shape) { return shape.from(link); }, shape_);
  }
  [[nodiscard]] uint32_t to(uint32_t link) const {
    return std::visit([&](const auto& shape) { return shape.to(link); }, shape_);
  }
  /// The link in the other direction between the same ports.
  [[nodiscard]] uint32_t reverse(uint32_t link) const {
    return std::visit([&](const auto& shape) { return shape.reverse(link); }, shape_);
  }
  /// Links of one class have one rate and delay: those of a dimension, or of a row of a fat tree.
  [[nodiscard]] uint32_t link_class(uint32_t link) const {
    return std::visit([&](const auto& shape) { return shape.link_class(link); }, shape_);
  }
  [[nodiscard]] uint32_t link_classes() const {
    return std::visit([](const auto& shape) { return shape.link_classes(); }, shape_);
  }
  /// @param destination a node. @return kNoLink: `at` is the destination.
  [[nodiscard]] uint32_t next_link(uint32_t at, uint32_t destination) const {
    return std::visit([&](const auto& shape) { return shape.next_link(at, destination); }, shape_);
  }
  /// Hops of the longest route.
  [[nodiscard]] uint32_t diameter() const {
    return std::visit([](const auto& shape) { return shape.diameter(); }, shape_);
  }
  /// The place of a device; each shape says what its coordinates mean.
  [[nodiscard]] std::vector<uint32_t> coordinates(uint32_t device) const {
    return std::visit([&](const auto& shape) { return shape.coordinates(device); }, shape_);
  }

 private:
  Shape shape_;
};

}  // namespace rio::sim
