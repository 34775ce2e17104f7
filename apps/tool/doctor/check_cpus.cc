// Where a polling thread would run.
#include <algorithm>
#include <set>

#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/files.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::tool {
namespace {

using pmd::cores::format_cpu_list;

constexpr uint64_t kLatencyMaxUs = 10;

std::vector<unsigned> in_both(const std::vector<unsigned>& a, const std::vector<unsigned>& b) {
  std::vector<unsigned> both = a;
  std::erase_if(both, [&b](unsigned cpu) { return std::find(b.begin(), b.end(), cpu) == b.end(); });
  return both;
}

/// CPUs near any of the cards.
std::vector<unsigned> near_cards(const Machine& machine) {
  std::set<unsigned> cpus;
  for (const CardState& card : machine.cards) {
    const auto some = machine.near(card);
    cpus.insert(some.begin(), some.end());
  }
  return {cpus.begin(), cpus.end()};
}

void check_distance(const Machine& machine, const CardState& card, Findings& findings) {
  const auto near = machine.near(card);
  if (near.empty() || machine.allowed.empty() || !in_both(near, machine.allowed).empty()) {
    return;
  }
  const int node = machine.placement->numa_node_of(near.front());
  const int own = machine.placement->numa_node_of(machine.allowed.front());
  const unsigned distance = machine.placement->numa_distance(node, own);
  findings.add("numa.far", card.address,
               "allowed: CPUs " + format_cpu_list(machine.allowed) + ", near the card (node " +
                   std::to_string(node) + "): " + format_cpu_list(near) +
                   (distance == 0 ? "" : ", distance " + std::to_string(distance) + " (local 10)"),
               "taskset -pc " + format_cpu_list(near) + " $$",
               "then start programs from this shell; in a container: --cpuset-cpus=" +
                   format_cpu_list(near));
}

std::string cpu_folder(const Machine& machine, unsigned cpu) {
  return machine.context.paths.sysfs + "/devices/system/cpu/cpu" + std::to_string(cpu);
}

/// A loop of the shell with `variable` over `numbers`.
template <class Numbers>
std::string for_each(const char* variable, const Numbers& numbers, const std::string& command) {
  std::string list;
  for (const unsigned number : numbers) {
    list += " " + std::to_string(number);
  }
  return std::string("for ") + variable + " in" + list + "; do " + command + "; done";
}

void check_governor(const Machine& machine, const std::vector<unsigned>& cpus, Findings& findings) {
  std::vector<unsigned> slow;
  std::string name;
  for (const unsigned cpu : cpus) {
    const std::string governor = text_of(cpu_folder(machine, cpu) + "/cpufreq/scaling_governor");
    if (!governor.empty() && governor != "performance") {
      slow.push_back(cpu);
      name = governor;
    }
  }
  if (!slow.empty()) {
    findings.add("cpu.governor", "", "governor " + name + " on CPUs " + format_cpu_list(slow),
                 for_each("c", slow,
                          "echo performance > "
                          "/sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor"));
  }
}

void check_idle(const Machine& machine, const std::vector<unsigned>& cpus, Findings& findings) {
  std::vector<unsigned> deep;
  std::set<unsigned> states;
  std::string seen;
  for (const unsigned cpu : cpus) {
    const std::string folder = cpu_folder(machine, cpu) + "/cpuidle";
    bool found = false;
    for (const std::string& name : names_in(folder)) {
      const auto number = number_after(name, "state");
      const std::string state = joined(folder, name);
      const uint64_t latency_us = number_of(state + "/latency").value_or(0);
      if (number && latency_us > kLatencyMaxUs && number_of(state + "/disable") == 0) {
        found = true;
        states.insert(*number);
        const std::string shown = text_of(state + "/name");
        seen = "state " + (shown.empty() ? name : shown) + " wakes after " +
               std::to_string(latency_us) + " us";
      }
    }
    if (found) {
      deep.push_back(cpu);
    }
  }
  if (deep.empty()) {
    return;
  }
  findings.add("cpu.idle-states", "", seen + ", on CPUs " + format_cpu_list(deep),
               for_each("c", deep,
                        for_each("s", states,
                                 "echo 1 > "
                                 "/sys/devices/system/cpu/cpu$c/cpuidle/state$s/disable")));
}

}  // namespace

void check_cpus(const Machine& machine, Findings& findings) {
  for (const CardState& card : machine.cards) {
    check_distance(machine, card, findings);
  }
  const auto near = near_cards(machine);
  const auto pollers = in_both(near, machine.isolated);
  // Where there is but one CPU, none can be set apart.
  if (near.size() > 1 && pollers.empty()) {
    const std::string rest = format_cpu_list(std::span<const unsigned>(near).subspan(1));
    const std::string option = "isolcpus=" + rest + " nohz_full=" + rest + " rcu_nocbs=" + rest;
    findings.add(
        "cpu.not-isolated", "",
        "isolated: " + (machine.isolated.empty() ? "none" : format_cpu_list(machine.isolated)) +
            "; near the cards: " + format_cpu_list(near),
        "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&" + option +
            " /' /etc/default/grub && "
            "update-grub",
        "then reboot; without GRUB: these options on the kernel's command line");
  }
  const auto& matter = pollers.empty() ? near : pollers;
  check_governor(machine, matter, findings);
  check_idle(machine, matter, findings);
}

}  // namespace rio::tool
