#include "fpga/sim/grid.hpp"

#include <cerrno>

#include "base/formatted.hpp"

namespace rio::sim {

int Grid::create(bool wraps, std::span<const uint32_t> lengths, Grid* out, std::string* error) {
  if (lengths.empty() || lengths.size() > kDimensionsMax) {
    return base::fail(error, "%zu dimensions; give 1 to %zu lengths, as in 8x4x4", lengths.size(),
                      kDimensionsMax);
  }
  Grid grid;
  grid.wraps_ = wraps;
  grid.axes_.clear();
  const auto ports = static_cast<uint32_t>(2 * lengths.size());
  uint64_t nodes = 1;
  for (const uint32_t length : lengths) {
    if (length == 0) {
      return base::fail(error, "a dimension of length 0; give lengths of 1 or more");
    }
    grid.axes_.push_back({Reciprocal(length), Reciprocal(static_cast<uint32_t>(nodes))});
    nodes *= length;
    if (nodes * ports > kLinksMax) {
      (void)base::fail(error, "more than %u nodes; make it smaller", kLinksMax / ports);
      return -E2BIG;
    }
  }
  grid.per_node_ = Reciprocal(ports);
  grid.nodes_ = static_cast<uint32_t>(nodes);
  *out = std::move(grid);
  return 0;
}

bool Grid::has_link(uint32_t link) const {
  const uint32_t node = from(link);
  const uint32_t port = link - node * ports();
  const Axis& axis = axes_[port / 2];
  const uint32_t length = axis.length.divisor();
  const uint32_t at = axis.length.modulo(axis.stride.divide(node));
  const bool is_down = port % 2 != 0;
  if (wraps_) {
    return length > 2 || (length == 2 && !is_down);
  }
  return is_down ? at > 0 : at + 1 < length;
}

uint32_t Grid::reverse(uint32_t link) const {
  const uint32_t port = link - from(link) * ports();
  const bool is_pair = wraps_ && axes_[port / 2].length.divisor() == 2;
  return to(link) * ports() + (is_pair ? port : port ^ 1);
}

uint32_t Grid::diameter() const {
  uint32_t hops = 0;
  for (const Axis& axis : axes_) {
    hops += wraps_ ? axis.length.divisor() / 2 : axis.length.divisor() - 1;
  }
  return hops;
}

std::vector<uint32_t> Grid::coordinates(uint32_t node) const {
  std::vector<uint32_t> at;
  for (const Axis& axis : axes_) {
    at.push_back(axis.length.modulo(axis.stride.divide(node)));
  }
  return at;
}

}  // namespace rio::sim
