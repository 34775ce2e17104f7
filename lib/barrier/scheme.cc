#include "lib/barrier/scheme.hpp"

#include <cerrno>
#include <utility>

#include "base/formatted.hpp"
#include "base/number.hpp"
#include "lib/barrier/makers.hpp"

namespace rio::barrier {
namespace {

constexpr const char* kTexts =
    "classic, two-way, dimensions:8x4x4, torus:8x4x4, mesh:8x4, tree, tree:2 or tree:3";

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

/// Read "8x4x4". @return 0, -EINVAL.
int parse_grid(std::string_view text, Grid* out, std::string* error) {
  Grid grid;
  std::string_view rest = text;
  for (bool is_more = true; is_more;) {
    const size_t end = rest.find('x');
    is_more = end != std::string_view::npos;
    if (grid.dimensions == Grid::kDimensionsMax) {
      return base::fail(error, "schedule: more than %u dimensions in '%s'", Grid::kDimensionsMax,
                        base::printable(text).c_str());
    }
    if (!base::read_decimal(rest.substr(0, end), 1, UINT32_MAX, &grid.lengths[grid.dimensions])) {
      return base::fail(error,
                        "schedule: '%s' is no list of lengths of dimensions, such as 8x4x4; each "
                        "is at least 1",
                        base::printable(text).c_str());
    }
    ++grid.dimensions;
    rest.remove_prefix(is_more ? end + 1 : rest.size());
  }
  if (grid.nodes() == 0) {
    return base::fail(error, "schedule: '%s' has more nodes than ranks can number (4294967295)",
                      base::printable(text).c_str());
  }
  *out = grid;
  return 0;
}

std::string to_text(const Grid& grid) {
  std::string text;
  for (uint32_t d = 0; d < grid.dimensions; ++d) {
    text += (d == 0 ? "" : "x") + std::to_string(grid.lengths[d]);
  }
  return text;
}

const Grid* grid_of(const Scheme& scheme) {
  return std::visit(
      Overloaded{[](const Dimensions& of) { return &of.grid; },
                 [](const Torus& of) { return &of.grid; }, [](const Mesh& of) { return &of.grid; },
                 [](const auto&) -> const Grid* { return nullptr; }},
      scheme);
}

}  // namespace

int parse_scheme(std::string_view text, Scheme* out, std::string* error) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool has_value = colon != std::string_view::npos;
  const std::string_view value = has_value ? text.substr(colon + 1) : std::string_view{};
  const bool is_of_grid = name == "dimensions" || name == "torus" || name == "mesh";
  if (is_of_grid) {
    if (!has_value) {
      return base::fail(error, "schedule: '%s' needs the lengths of its dimensions, as in %s:8x4x4",
                        base::printable(text).c_str(), base::printable(name).c_str());
    }
    Grid grid;
    if (const int failure = parse_grid(value, &grid, error); failure != 0) {
      return failure;
    }
    *out = name == "dimensions" ? Scheme{Dimensions{grid}}
           : name == "torus"    ? Scheme{Torus{grid}}
                                : Scheme{Mesh{grid}};
    return 0;
  }
  if (name == "tree") {
    Tree tree;
    if (has_value && !base::read_decimal(value, 2, 3, &tree.arity)) {
      return base::fail(error, "schedule: '%s': the arity of a tree is 2 or 3",
                        base::printable(text).c_str());
    }
    *out = tree;
    return 0;
  }
  if (name != "classic" && name != "two-way") {
    return base::fail(error, "schedule: '%s' is no schedule; there are: %s",
                      base::printable(text).c_str(), kTexts);
  }
  if (has_value) {
    return base::fail(error, "schedule: '%s': nothing may follow '%s'",
                      base::printable(text).c_str(), base::printable(name).c_str());
  }
  *out = name == "classic" ? Scheme{Classic{}} : Scheme{TwoWay{}};
  return 0;
}

std::string to_string(const Scheme& scheme) {
  return std::visit(
      Overloaded{[](const Classic&) { return std::string("classic"); },
                 [](const TwoWay&) { return std::string("two-way"); },
                 [](const Dimensions& of) { return "dimensions:" + to_text(of.grid); },
                 [](const Torus& of) { return "torus:" + to_text(of.grid); },
                 [](const Mesh& of) { return "mesh:" + to_text(of.grid); },
                 [](const Tree& of) {
                   return of.arity == 3 ? "tree" : "tree:" + std::to_string(of.arity);
                 }},
      scheme);
}

int count_rounds(const Scheme& scheme, uint32_t ranks, uint32_t* out) {
  if (ranks == 0) {
    return -EINVAL;
  }
  const uint32_t rounds =
      std::visit([ranks](const auto& of) { return makers::rounds(of, ranks); }, scheme);
  if (rounds > kRoundsMax) {
    return rounds == makers::kUnfit ? -EINVAL : -E2BIG;
  }
  *out = rounds;
  return 0;
}

int check_fits(const Scheme& scheme, uint32_t ranks, std::string* error) {
  uint32_t rounds = 0;
  const int failure = count_rounds(scheme, ranks, &rounds);
  const std::string text = to_string(scheme);
  if (failure == -E2BIG) {
    rounds = std::visit([ranks](const auto& of) { return makers::rounds(of, ranks); }, scheme);
    *error = base::formatted(
        "schedule: '%s' takes %u rounds for %u ranks, and a descriptor has %u; use two-way or "
        "torus, or fewer ranks",
        text.c_str(), rounds, ranks, kRoundsMax);
  } else if (failure != 0 && ranks == 0) {
    *error = base::formatted("schedule: '%s': a group has at least 1 rank", text.c_str());
  } else if (const Grid* const grid = grid_of(scheme); failure != 0 && grid != nullptr) {
    *error = base::formatted(
        "schedule: '%s' has %u nodes, and the group has %u ranks; give lengths whose product is "
        "the number of ranks",
        text.c_str(), grid->nodes(), ranks);
  } else if (failure != 0) {
    *error = base::formatted("schedule: '%s': the arity of a tree is 2 or 3", text.c_str());
  }
  return failure;
}

int make_schedule(const Scheme& scheme, uint32_t ranks, uint32_t rank, Schedule* out) {
  if (rank >= ranks) {
    return -EINVAL;
  }
  uint32_t rounds = 0;
  if (const int failure = count_rounds(scheme, ranks, &rounds); failure != 0) {
    return failure;
  }
  *out = Schedule{};
  out->rounds = rounds;
  std::visit([=](const auto& of) { makers::fill(of, ranks, rank, out); }, scheme);
  return 0;
}

}  // namespace rio::barrier
