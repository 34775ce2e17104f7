#include "apps/testpmd/lcores.hpp"

#include <rte_lcore.h>

#include <algorithm>

namespace rio::testpmd {
namespace {

std::vector<unsigned> eal_lcores() {
  std::vector<unsigned> all;
  for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
    if (rte_lcore_is_enabled(lcore) != 0) {
      all.push_back(lcore);
    }
  }
  return all;
}

std::string list_text(const std::vector<unsigned>& list) {
  std::string text;
  for (const unsigned n : list) {
    text += (text.empty() ? "" : ",") + std::to_string(n);
  }
  return text;
}

/// Nearest first: the socket of the first card before the others.
void sort_by_distance(std::vector<unsigned>* lcores, int numa_node) {
  std::stable_sort(lcores->begin(), lcores->end(), [numa_node](unsigned a, unsigned b) {
    const bool near_a = static_cast<int>(rte_lcore_to_socket_id(a)) == numa_node;
    const bool near_b = static_cast<int>(rte_lcore_to_socket_id(b)) == numa_node;
    return near_a && !near_b;
  });
}

void warn_of_sharing(const std::vector<unsigned>& lcores, std::string* warnings) {
  for (size_t i = 0; i < lcores.size(); ++i) {
    for (size_t j = i + 1; j < lcores.size(); ++j) {
      rte_cpuset_t both;
      const rte_cpuset_t first = rte_lcore_cpuset(lcores[i]);
      const rte_cpuset_t second = rte_lcore_cpuset(lcores[j]);
      CPU_AND(&both, &first, &second);
      if (CPU_COUNT(&both) != 0) {
        *warnings += "warning: lcores " + std::to_string(lcores[i]) + " and " +
                     std::to_string(lcores[j]) +
                     " poll and share a core: each will wait for the other; give EAL an lcore on "
                     "another core (-l 0,1)\n";
      }
    }
  }
}

}  // namespace

int choose_lcores(const Options& options, const Mode& mode,
                  std::span<const std::unique_ptr<Port>> ports, size_t streams,
                  std::vector<unsigned>* lcores, std::string* warnings, std::string* error) {
  const std::vector<unsigned> all = eal_lcores();
  std::vector<unsigned> chosen = options.forward_lcores;
  const std::string many = std::to_string(streams) + (streams == 1 ? " stream" : " streams");
  if (chosen.empty()) {
    chosen = all;
    sort_by_distance(&chosen, ports.front()->card().bus().numa_node());
    const size_t wanted = options.nb_cores != 0                       ? options.nb_cores
                          : mode.name == std::string_view("pingpong") ? 2
                                                                      : 1;
    if (options.nb_cores > all.size()) {
      *error = "--nb-cores " + std::to_string(options.nb_cores) + ": EAL has only " +
               std::to_string(all.size()) + " lcores (" + list_text(all) + "); give it more by -l";
      return -EINVAL;
    }
    chosen.resize(std::min(wanted, chosen.size()));
  }
  for (const unsigned lcore : chosen) {
    if (std::find(all.begin(), all.end(), lcore) == all.end()) {
      *error = "--forward-lcores: EAL has no lcore " + std::to_string(lcore) + ", only " +
               list_text(all) + "; give it more by -l";
      return -EINVAL;
    }
  }
  if (chosen.size() > streams) {
    if (options.nb_cores == 0 && options.forward_lcores.empty()) {
      chosen.resize(streams);
    } else {
      *error = std::to_string(chosen.size()) + " lcores for " + std::to_string(ports.size()) +
               " ports: mode " + mode.name + " has " + many + " to poll; give at most that many";
      return -EINVAL;
    }
  }
  warn_of_sharing(chosen, warnings);
  *lcores = std::move(chosen);
  return 0;
}

}  // namespace rio::testpmd
