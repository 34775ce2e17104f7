// Any text as a barrier's schedule, skew and times of deaths: it is refused with a reason, or what
// was read is valid and can be written again; schedules obey the card's rules.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/sim/barrier_options.hpp"
#include "apps/sim/barrier_run.hpp"
#include "apps/sim/skew.hpp"
#include "fpga/sim/topology.hpp"
#include "lib/barrier/scheme.hpp"

namespace {

using rio::barrier::Scheme;

void check(bool holds) {
  if (!holds) {
    std::abort();
  }
}

/// The number of ranks that fits a scheme: of its grid, or else any.
uint32_t ranks_of(const Scheme& scheme, uint32_t otherwise) {
  if (const auto* const torus = std::get_if<rio::barrier::Torus>(&scheme); torus != nullptr) {
    return torus->grid.nodes();
  }
  if (const auto* const mesh = std::get_if<rio::barrier::Mesh>(&scheme); mesh != nullptr) {
    return mesh->grid.nodes();
  }
  const auto* const dimensions = std::get_if<rio::barrier::Dimensions>(&scheme);
  return dimensions != nullptr ? dimensions->grid.nodes() : otherwise;
}

void check_schedules(const Scheme& scheme, uint32_t ranks) {
  std::string error;
  uint32_t rounds = 0;
  if (rio::barrier::count_rounds(scheme, ranks, &rounds) != 0) {
    check(rio::barrier::check_fits(scheme, ranks, &error) != 0 && !error.empty());
    return;
  }
  for (const uint32_t rank : {0u, ranks / 2, ranks - 1}) {
    rio::barrier::Schedule schedule;
    check(rio::barrier::make_schedule(scheme, ranks, rank, &schedule) == 0);
    check(schedule.rounds == rounds);
    check(rounds == 0 || rio::barrier::broken_rule(schedule, ranks, rank).rule == nullptr);
  }
}

void check_scheme_text(std::string_view text) {
  Scheme scheme;
  std::string error;
  if (rio::barrier::parse_scheme(text, &scheme, &error) != 0) {
    check(!error.empty());
  } else {
    Scheme again;
    check(rio::barrier::parse_scheme(rio::barrier::to_string(scheme), &again, &error) == 0);
    check(again == scheme);
    for (const uint32_t ranks : {1u, 2u, 7u, 128u, 4'000'000'000u}) {
      check_schedules(scheme, ranks_of(scheme, ranks));
    }
  }
  static constexpr std::array<uint32_t, 2> kLengths{4, 3};
  rio::sim::Grid grid;
  check(rio::sim::Grid::create(true, kLengths, &grid, &error) == 0);
  error.clear();
  Scheme resolved;
  check(rio::simapp::resolve_schedule(std::string(text), rio::sim::NetworkTopology(grid), 12,
                                      &resolved, &error) == 0 ||
        !error.empty());
}

void check_words(std::string_view text) {
  std::string error;
  rio::simapp::Skew skew;
  if (rio::simapp::Skew::parse(text, &skew, &error) == 0) {
    rio::simapp::Skew again;
    check(rio::simapp::Skew::parse(skew.text(), &again, &error) == 0 && again == skew);
  } else {
    check(!error.empty());
  }
  error.clear();
  rio::simapp::BarrierPlan plan;
  const rio::simapp::BarrierWords words{.dead_at = std::string(text)};
  check(rio::simapp::take_words(words, &plan, &error) == 0 ? plan.dead_from_ns <= plan.dead_until_ns
                                                           : !error.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_scheme_text(text);
  check_words(text);
  return 0;
}
