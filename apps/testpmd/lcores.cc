#include "apps/testpmd/lcores.hpp"

#include <rte_lcore.h>

#include <algorithm>

namespace rio::testpmd {
namespace {

std::vector<unsigned> eal_lcores() {
  std::vector<unsigned> all;
  unsigned lcore = 0;
  RTE_LCORE_FOREACH(lcore) {
    all.push_back(lcore);
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

unsigned cpu_of(unsigned lcore) {
  return static_cast<unsigned>(rte_lcore_to_cpu_id(static_cast<int>(lcore)));
}

/// Nearest to the card first, whole cores before second hyperthreads.
void sort_by_distance(std::vector<unsigned>* lcores, const pmd::cores::Placement& placement,
                      pmd::Bus& bus) {
  const bool pci = bus.name().size() == 12 && bus.name()[4] == ':';  // 0000:03:00.0
  std::vector<unsigned> order;
  if (placement.choose({.pci_address = pci ? bus.name() : "", .numa_node = bus.numa_node()},
                       static_cast<unsigned>(placement.cpus().size()), {}, &order) != 0) {
    return;
  }
  const auto rank = [&order](unsigned lcore) {
    return std::find(order.begin(), order.end(), cpu_of(lcore)) - order.begin();
  };
  std::stable_sort(lcores->begin(), lcores->end(),
                   [&rank](unsigned a, unsigned b) { return rank(a) < rank(b); });
}

/// Lcores may float over several CPUs (--lcores): then their sets are compared.
void warn_of_sharing(const std::vector<unsigned>& lcores, const pmd::cores::Placement* placement,
                     std::string* warnings) {
  std::vector<unsigned> cpus;
  for (const unsigned lcore : lcores) {
    cpus.push_back(cpu_of(lcore));
  }
  std::string warning = placement == nullptr ? "" : placement->sharing_warning(cpus);
  for (size_t i = 0; warning.empty() && i < lcores.size(); ++i) {
    for (size_t j = i + 1; j < lcores.size(); ++j) {
      rte_cpuset_t both;
      const rte_cpuset_t first = rte_lcore_cpuset(lcores[i]);
      const rte_cpuset_t second = rte_lcore_cpuset(lcores[j]);
      CPU_AND(&both, &first, &second);
      if (CPU_COUNT(&both) != 0) {
        warning = "lcores " + std::to_string(lcores[i]) + " and " + std::to_string(lcores[j]) +
                  " poll and share a CPU: each will wait for the other; give EAL an lcore on "
                  "another core (-l 0,1)";
      }
    }
  }
  if (!warning.empty()) {
    *warnings += "rio-testpmd: warning: " + warning + "\n";
  }
}

}  // namespace

int choose_lcores(const Options& options, const Mode& mode, const pmd::cores::Placement* placement,
                  std::span<const std::unique_ptr<TestPort>> ports, size_t streams,
                  std::vector<unsigned>* lcores, std::string* warnings, std::string* error) {
  const std::vector<unsigned> all = eal_lcores();
  std::vector<unsigned> chosen = options.forward_lcores;
  const std::string many = std::to_string(streams) + (streams == 1 ? " stream" : " streams");
  if (chosen.empty()) {
    chosen = all;
    if (placement != nullptr) {
      sort_by_distance(&chosen, *placement, ports.front()->card().bus());
    }
    const size_t wanted = options.nb_cores != 0                       ? options.nb_cores
                          : mode.name == std::string_view("pingpong") ? 2
                                                                      : 1;
    if (options.nb_cores > all.size()) {
      *error = "--nb-cores " + std::to_string(options.nb_cores) + ": EAL has only " +
               std::to_string(all.size()) + (all.size() == 1 ? " lcore (" : " lcores (") +
               list_text(all) + "); give it more by -l";
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
               (ports.size() == 1 ? " port" : " ports") + ": mode " + mode.name + " has " + many +
               " to poll; give at most that many";
      return -EINVAL;
    }
  }
  warn_of_sharing(chosen, placement, warnings);
  *lcores = std::move(chosen);
  return 0;
}

}  // namespace rio::testpmd
