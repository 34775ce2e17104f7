// The check that fits a scheme.
#include "base/formatted.hpp"
#include "lib/barrier/schedule_check.hpp"

namespace rio::barrier {
namespace {

Grid line_of(uint32_t ranks) {
  Grid grid{.dimensions = 1};
  grid.lengths[0] = ranks;
  return grid;
}

/// Chooses the check of spread that works at any size.
struct Structure {
  uint32_t ranks;
  const ScheduleOf& schedule_of;
  std::string* problem;

  int operator()(const Classic& /*scheme*/) const { return translates(line_of(ranks), false); }
  int operator()(const TwoWay& /*scheme*/) const { return translates(line_of(ranks), false); }
  int operator()(const Dimensions& scheme) const { return translates(scheme.grid, false); }
  int operator()(const Torus& scheme) const { return translates(scheme.grid, false); }
  int operator()(const Mesh& scheme) const { return translates(scheme.grid, true); }
  int operator()(const Tree& scheme) const {
    std::vector<Schedule> schedules;
    if (make_all(ranks, schedule_of, &schedules) != 0) {
      return base::fail(problem, "a rank has no schedule");
    }
    const int failure = check_consistent(schedules, problem);
    return failure != 0 ? failure : check_hub(schedules, root_of(scheme, ranks), problem);
  }

 private:
  [[nodiscard]] int translates(const Grid& grid, bool is_folded) const {
    return check_translates({grid, is_folded}, schedule_of, problem);
  }
};

}  // namespace

int check_scheme(const Scheme& scheme, uint32_t ranks, std::string* problem) {
  if (const int failure = check_fits(scheme, ranks, problem); failure != 0) {
    return failure;
  }
  const ScheduleOf schedule_of = [&](uint32_t rank, Schedule* out) {
    return make_schedule(scheme, ranks, rank, out);
  };
  const int failure = std::visit(Structure{ranks, schedule_of, problem}, scheme);
  if (failure != 0 || ranks > kSetsMax) {
    return failure;
  }
  std::vector<Schedule> schedules;
  if (make_all(ranks, schedule_of, &schedules) != 0) {
    return base::fail(problem, "a rank has no schedule");
  }
  const int fault = check_consistent(schedules, problem);
  return fault != 0 ? fault : check_spread(schedules, problem);
}

}  // namespace rio::barrier
