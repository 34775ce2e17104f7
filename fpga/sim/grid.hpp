/// @file
/// A torus or a mesh of any dimensions, with dimension-order routing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fpga/sim/hop.hpp"
#include "fpga/sim/reciprocal.hpp"

namespace rio::sim {

/// Nodes are numbered with the first dimension fastest, and each node is a device. A link has
/// number (node * dimensions + dimension) * 2, plus 1 toward lower coordinates. Immutable.
class Grid {
 public:
  static constexpr size_t kDimensionsMax = 8;

  /// @param wraps true: a torus, false: a mesh. @param lengths of 1 to kDimensionsMax dimensions,
  /// 1 or more each. @param error the error with its remedy; set on failure only.
  /// @return 0, -EINVAL, -E2BIG: more links than kLinksMax.
  [[nodiscard]] static int create(bool wraps, std::span<const uint32_t> lengths, Grid* out,
                                  std::string* error);
  /// A grid of one node.
  Grid() = default;

  [[nodiscard]] bool wraps() const { return wraps_; }
  [[nodiscard]] uint32_t dimensions() const { return static_cast<uint32_t>(axes_.size()); }
  [[nodiscard]] uint32_t length(uint32_t dimension) const {
    return axes_[dimension].length.divisor();
  }

  [[nodiscard]] uint32_t nodes() const { return nodes_; }
  [[nodiscard]] uint32_t devices() const { return nodes_; }
  [[nodiscard]] uint32_t links() const { return nodes_ * ports(); }
  /// Whether a number below links() is a link: a mesh has none at its borders. In a torus, a
  /// dimension of two nodes has one link each way, and one of one node has none.
  [[nodiscard]] bool has_link(uint32_t link) const;
  [[nodiscard]] LinkRange links_from(uint32_t device) const { return {device * ports(), ports()}; }
  [[nodiscard]] uint32_t from(uint32_t link) const { return per_node_.divide(link); }
  /// Hot. @param link one that exists.
  [[nodiscard]] uint32_t to(uint32_t link) const {
    const uint32_t node = per_node_.divide(link);
    const uint32_t port = link - node * ports();
    const Axis& axis = axes_[port / 2];
    const uint32_t at = axis.length.modulo(axis.stride.divide(node));
    const uint32_t last = axis.length.divisor() - 1;
    const uint32_t stride = axis.stride.divisor();
    if (port % 2 == 0) {
      return at == last ? node - last * stride : node + stride;
    }
    return at == 0 ? node + last * stride : node - stride;
  }
  /// The link in the other direction between the same nodes.
  [[nodiscard]] uint32_t reverse(uint32_t link) const;
  /// The class of a link: its dimension.
  [[nodiscard]] uint32_t link_class(uint32_t link) const {
    return (link - from(link) * ports()) / 2;
  }
  [[nodiscard]] uint32_t link_classes() const { return dimensions(); }

  /// Hot. The route takes the lowest dimension that differs first; in a torus in the shorter
  /// direction round the ring, and if both are equal toward higher coordinates. @return kNoLink:
  /// `at` is the destination.
  [[nodiscard]] uint32_t next_link(uint32_t at, uint32_t destination) const {
    uint32_t here = at;
    uint32_t there = destination;
    uint32_t port = 0;
    for (const Axis& axis : axes_) {
      const uint32_t here_on = axis.length.divide(here);
      const uint32_t there_on = axis.length.divide(there);
      const uint32_t length = axis.length.divisor();
      const uint32_t from = here - here_on * length;
      const uint32_t to = there - there_on * length;
      if (from != to) {
        const uint32_t up = to > from ? to - from : to + length - from;
        const bool is_down = wraps_ ? up > length - up : to < from;
        return at * ports() + port + static_cast<uint32_t>(is_down);
      }
      here = here_on;
      there = there_on;
      port += 2;
    }
    return kNoLink;
  }
  /// Hops of the longest route between two nodes.
  [[nodiscard]] uint32_t diameter() const;
  /// A node's coordinates, one a dimension.
  [[nodiscard]] std::vector<uint32_t> coordinates(uint32_t node) const;

 private:
  struct Axis {
    Reciprocal length;
    Reciprocal stride;  ///< between the numbers of neighbours
  };

  [[nodiscard]] uint32_t ports() const { return per_node_.divisor(); }

  bool wraps_ = false;
  uint32_t nodes_ = 1;
  Reciprocal per_node_{2};  ///< numbers of links that a node has
  std::vector<Axis> axes_{{Reciprocal(1), Reciprocal(1)}};
};

}  // namespace rio::sim
