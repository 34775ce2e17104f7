#include "fpga/wire/free_ids.hpp"

namespace rio::wire {

uint32_t lowest_free(const std::set<uint32_t>& taken, uint32_t ids) {
  uint32_t first = 1;
  for (const uint32_t id : taken) {
    if (id >= first && id - first < ids) {
      first = id + 1;
    }
  }
  return first;
}

bool all_free(const std::set<uint32_t>& taken, uint32_t first, uint32_t ids) {
  const auto it = taken.lower_bound(first);
  return it == taken.end() || *it - first >= ids;
}

uint32_t next_free(const std::set<uint32_t>& taken, uint32_t wish, uint32_t ids, uint32_t step) {
  constexpr uint32_t kEnd = 1u << 16;
  const uint32_t places = (kEnd - 1) / step;
  uint32_t first = wish;
  for (uint32_t tried = 0; tried <= places; ++tried) {
    if (all_free(taken, first, ids)) {
      return first;
    }
    first += step;
    first = first + ids >= kEnd ? step : first;
  }
  return wish;
}

}  // namespace rio::wire
