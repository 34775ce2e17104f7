#include "fpga/sim/topology.hpp"

#include "base/formatted.hpp"
#include "base/number.hpp"

namespace rio::sim {
namespace {

[[nodiscard]] bool read_lengths(std::string_view text, std::vector<uint32_t>* out) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    uint32_t length = 0;
    if (!base::read_decimal(text.substr(begin, end - begin), 1, UINT32_MAX, &length)) {
      return false;
    }
    out->push_back(length);
    begin = end + 1;
  }
  return true;
}

[[nodiscard]] int create_grid(bool wraps, const std::vector<uint32_t>& lengths,
                              NetworkTopology* out, std::string* error) {
  Grid grid;
  const int rc = Grid::create(wraps, lengths, &grid, error);
  if (rc == 0) {
    *out = NetworkTopology(std::move(grid));
  }
  return rc;
}

[[nodiscard]] int create_fat_tree(const std::vector<uint32_t>& numbers, NetworkTopology* out,
                                  std::string* error) {
  if (numbers.size() != 2) {
    return base::fail(error, "give arity and levels, as in fat-tree:16x3");
  }
  FatTree tree;
  const int rc = FatTree::create(numbers[0], numbers[1], &tree, error);
  if (rc == 0) {
    *out = NetworkTopology(std::move(tree));
  }
  return rc;
}

[[nodiscard]] int create_from_file(const std::string& path, NetworkTopology* out,
                                   std::string* error) {
  wire::switched::Topology file;
  int rc = wire::switched::load_topology(path, &file, error);
  if (rc != 0) {
    return rc;
  }
  FileFabric fabric;
  rc = FileFabric::create(file, &fabric, error);
  if (rc != 0) {
    *error = path + ": " + *error;
    return rc;
  }
  *out = NetworkTopology(std::move(fabric));
  return 0;
}

}  // namespace

int NetworkTopology::create(std::string_view text, NetworkTopology* out, std::string* error) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  if (kind == "file") {
    return create_from_file(std::string(rest), out, error);
  }
  const std::string shown = base::printable(text);
  if (kind != "torus" && kind != "mesh" && kind != "fat-tree") {
    return base::fail(error,
                      "topology '%s': no such kind; give torus:8x4x4, mesh:10x10, fat-tree:16x3 or "
                      "file:PATH",
                      shown.c_str());
  }
  std::vector<uint32_t> lengths;
  if (!read_lengths(rest, &lengths)) {
    return base::fail(error, "topology '%s': '%s' is no list of numbers; write it as in %s",
                      shown.c_str(), base::printable(rest).c_str(),
                      kind == "fat-tree" ? "fat-tree:16x3" : "torus:8x4x4");
  }
  const int rc = kind == "fat-tree" ? create_fat_tree(lengths, out, error)
                                    : create_grid(kind == "torus", lengths, out, error);
  if (rc != 0) {
    *error = "topology '" + shown + "': " + *error;
  }
  return rc;
}

}  // namespace rio::sim
