#include "pmd/cores/cpu_list.hpp"

#include <hwloc.h>

#include <cstdlib>

#include "base/number.hpp"

namespace rio::pmd::cores {

bool parse_cpu_list(const std::string& text, std::vector<unsigned>* out, std::string* problem) {
  const auto read = [](std::string_view cpu, uint32_t* number) {
    return base::read_decimal(cpu, 0, 65535, number);
  };
  return base::read_ranges(text, ',', "CPU number", read, out, problem);
}

std::string format_cpu_list(std::span<const unsigned> cpus) {
  const hwloc_bitmap_t set = hwloc_bitmap_alloc();
  for (const unsigned cpu : cpus) {
    hwloc_bitmap_set(set, cpu);
  }
  char* list = nullptr;
  hwloc_bitmap_list_asprintf(&list, set);
  std::string text = list;
  std::free(list);
  hwloc_bitmap_free(set);
  return text;
}

}  // namespace rio::pmd::cores
