#include "pmd/cores/cpu_list.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cstdlib>

#include "base/number.hpp"

namespace rio::pmd::cores {
namespace {

constexpr unsigned kCpuMax = 65535;

bool parse_number(const std::string& text, unsigned* value, std::string* problem) {
  const bool good = base::read_decimal(text, 0, kCpuMax, value);
  if (!good) {
    *problem = text.empty() ? "a number is missing" : '"' + text + "\" is not a CPU number";
  }
  return good;
}

}  // namespace

bool parse_cpu_list(const std::string& text, std::vector<unsigned>* out, std::string* problem) {
  std::vector<unsigned> list;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const size_t dash = part.find('-');
    unsigned first = 0;
    if (!parse_number(part.substr(0, dash), &first, problem)) {
      return false;
    }
    unsigned last = first;
    if (dash != std::string::npos && !parse_number(part.substr(dash + 1), &last, problem)) {
      return false;
    }
    if (last < first) {
      *problem = "the range " + part + " falls";
      return false;
    }
    for (unsigned cpu = first; cpu <= last; ++cpu) {
      list.push_back(cpu);
    }
    if (list.size() > kCpuMax) {
      *problem = "it is too long";
      return false;
    }
    at = comma + 1;
  }
  *out = std::move(list);
  return true;
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
