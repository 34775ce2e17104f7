#include "fpga/sim/fat_tree.hpp"

#include <cerrno>

#include "base/formatted.hpp"

namespace rio::sim {

int FatTree::create(uint32_t arity, uint32_t levels, FatTree* out, std::string* error) {
  if (arity < 2 || levels == 0) {
    return base::fail(error,
                      "%u levels of arity %u; give an arity of 2 or more, and 1 level or more",
                      levels, arity);
  }
  FatTree tree;
  tree.powers_.clear();
  uint64_t nodes = 1;
  for (uint32_t level = 0; level < levels; ++level) {
    tree.powers_.emplace_back(static_cast<uint32_t>(nodes));
    tree.row_ = tree.powers_.back();
    nodes *= arity;
    if (nodes > kLinksMax / (1 + uint64_t{2} * levels)) {
      (void)base::fail(error, "more than %u links; take a smaller arity or fewer levels",
                       kLinksMax);
      return -E2BIG;
    }
  }
  tree.nodes_ = static_cast<uint32_t>(nodes);
  tree.arity_ = Reciprocal(arity);
  tree.per_switch_ = Reciprocal(2 * arity);
  *out = std::move(tree);
  return 0;
}

bool FatTree::has_link(uint32_t link) const {
  if (link < nodes_) {
    return true;
  }
  const uint32_t one = per_switch_.divide(link - nodes_);
  const bool is_top = row_.divide(one) + 1 == levels();
  return !is_top || per_switch_.modulo(link - nodes_) < arity();
}

LinkRange FatTree::links_from(uint32_t device) const {
  if (device < nodes_) {
    return {device, 1};
  }
  return {nodes_ + (device - nodes_) * per_switch_.divisor(), per_switch_.divisor()};
}

uint32_t FatTree::reverse(uint32_t link) const {
  const uint32_t from_device = from(link);
  const uint32_t to_device = to(link);
  if (to_device < nodes_) {
    return to_device;
  }
  const uint32_t first = links_from(to_device).first;
  if (from_device < nodes_) {
    return first + arity_.modulo(from_device);
  }
  // A switch is reached from below by the digit that the lower switch has at its own row, and from
  // above by the digit that the upper switch has there.
  const uint32_t one = from_device - nodes_;
  const uint32_t from_level = row_.divide(one);
  const uint32_t to_level = row_.divide(to_device - nodes_);
  const uint32_t lower_level = from_level < to_level ? from_level : to_level;
  const uint32_t digit = arity_.modulo(powers_[lower_level].divide(row_.modulo(one)));
  return first + digit + (from_level < to_level ? 0 : arity());
}

uint32_t FatTree::link_class(uint32_t link) const {
  if (link < nodes_) {
    return 0;
  }
  const uint32_t one = per_switch_.divide(link - nodes_);
  const uint32_t port = link - nodes_ - one * per_switch_.divisor();
  return row_.divide(one) + (port >= arity() ? 1 : 0);
}

std::vector<uint32_t> FatTree::coordinates(uint32_t device) const {
  if (device >= nodes_) {
    return {row_.divide(device - nodes_), row_.modulo(device - nodes_)};
  }
  std::vector<uint32_t> digits;
  for (const Reciprocal& power : powers_) {
    digits.push_back(arity_.modulo(power.divide(device)));
  }
  return digits;
}

}  // namespace rio::sim
