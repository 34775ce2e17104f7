/// @file
/// A fat tree: k-ary with any number of levels, with full bandwidth to its roots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/sim/hop.hpp"
#include "fpga/sim/reciprocal.hpp"

namespace rio::sim {

/// arity^levels nodes below `levels` rows of arity^(levels-1) switches. A switch has `arity` links
/// down and, but for those of the top row, as many up. Switches of rows l and l + 1 are joined if
/// their numbers in the row, as digits to the base `arity`, agree in all digits but digit l.
///
/// Devices: nodes, then switches, row after row from the bottom. Links: one up from each node,
/// then for each switch those down and those up. Immutable.
class FatTree {
 public:
  /// @param arity at least 2. @param levels at least 1. @param error the error with its remedy; set
  /// on failure only. @return 0, -EINVAL, -E2BIG: more links than kLinksMax.
  [[nodiscard]] static int create(uint32_t arity, uint32_t levels, FatTree* out,
                                  std::string* error);
  /// A tree of two nodes at one switch.
  FatTree() = default;

  [[nodiscard]] uint32_t arity() const { return arity_.divisor(); }
  [[nodiscard]] uint32_t levels() const { return static_cast<uint32_t>(powers_.size()); }

  [[nodiscard]] uint32_t nodes() const { return nodes_; }
  [[nodiscard]] uint32_t devices() const { return nodes_ + levels() * row_.divisor(); }
  [[nodiscard]] uint32_t links() const { return (1 + 2 * levels()) * nodes_; }
  /// Whether a number below links() is a link: switches of the top row have none up.
  [[nodiscard]] bool has_link(uint32_t link) const;
  [[nodiscard]] LinkRange links_from(uint32_t device) const;
  [[nodiscard]] uint32_t from(uint32_t link) const {
    return link < nodes_ ? link : nodes_ + per_switch_.divide(link - nodes_);
  }
  /// Hot.
  [[nodiscard]] uint32_t to(uint32_t link) const {
    if (link < nodes_) {
      return nodes_ + arity_.divide(link);
    }
    const uint32_t one = per_switch_.divide(link - nodes_);
    const uint32_t port = link - nodes_ - one * per_switch_.divisor();
    const uint32_t level = row_.divide(one);
    const uint32_t number = one - level * row_.divisor();
    if (port >= arity()) {
      return nodes_ + (level + 1) * row_.divisor() + with_digit(number, level, port - arity());
    }
    if (level == 0) {
      return number * arity() + port;
    }
    return nodes_ + (level - 1) * row_.divisor() + with_digit(number, level - 1, port);
  }
  [[nodiscard]] uint32_t reverse(uint32_t link) const;
  /// The class of a link: 0 between nodes and switches, n between switches of rows n - 1 and n.
  [[nodiscard]] uint32_t link_class(uint32_t link) const;
  [[nodiscard]] uint32_t link_classes() const { return levels(); }

  /// Hot. The route goes up until the destination is below, by the links that the destination's
  /// digits choose, so that traffic of neighbours spreads over the roots; then down, where each
  /// root has one route to each node. @return kNoLink: `at` is the destination.
  [[nodiscard]] uint32_t next_link(uint32_t at, uint32_t destination) const {
    if (at < nodes_) {
      return at == destination ? kNoLink : at;
    }
    const uint32_t one = at - nodes_;
    const uint32_t level = row_.divide(one);
    const uint32_t number = one - level * row_.divisor();
    const uint32_t shifted = powers_[level].divide(destination);
    const uint32_t above = arity_.divide(shifted);
    const uint32_t digit = shifted - above * arity();
    const bool is_below = powers_[level].divide(number) == above;
    return nodes_ + one * per_switch_.divisor() + digit + (is_below ? 0 : arity());
  }
  [[nodiscard]] uint32_t diameter() const { return 2 * levels(); }
  /// For a node the digits of its number to the base arity(), the lowest first; for a switch its
  /// row, and its number in the row.
  [[nodiscard]] std::vector<uint32_t> coordinates(uint32_t device) const;

 private:
  [[nodiscard]] uint32_t with_digit(uint32_t number, uint32_t place, uint32_t digit) const {
    const uint32_t old = arity_.modulo(powers_[place].divide(number));
    return number - old * powers_[place].divisor() + digit * powers_[place].divisor();
  }

  uint32_t nodes_ = 2;
  Reciprocal arity_{2};
  Reciprocal row_{1};                              ///< switches in a row
  Reciprocal per_switch_{4};                       ///< numbers of links that a switch has
  std::vector<Reciprocal> powers_{Reciprocal(1)};  ///< arity^level
};

}  // namespace rio::sim
