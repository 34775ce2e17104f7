#include "pmd/api/pollers.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

#include "base/log.hpp"

namespace rio {
namespace {

using pmd::cores::Placement;

/// All pollers of the process, in the order in which they came. Never destroyed: threads may end
/// after main().
struct Pollers {
  std::mutex mutex;
  std::unique_ptr<Placement> placement;
  std::vector<unsigned> cpus;
};

Pollers& pollers() {
  static auto* all = new Pollers;
  return *all;
}

/// The calling thread's CPU, given back when the thread ends.
class OwnCpu {
 public:
  OwnCpu() = default;
  OwnCpu(const OwnCpu&) = delete;
  OwnCpu& operator=(const OwnCpu&) = delete;
  ~OwnCpu() {
    const std::lock_guard lock(pollers().mutex);
    drop();
  }
  /// With the lock held.
  void drop() {
    std::vector<unsigned>& cpus = pollers().cpus;
    if (cpu_.has_value()) {
      cpus.erase(std::find(cpus.begin(), cpus.end(), *cpu_));
    }
    cpu_.reset();
  }
  void take(unsigned cpu) {
    pollers().cpus.push_back(cpu);
    cpu_ = cpu;
  }

 private:
  std::optional<unsigned> cpu_;
};

thread_local OwnCpu t_own_cpu;

[[nodiscard]] int choose(const Pollers& all, const pmd::cores::Near& near, const std::string& cpus,
                         unsigned* cpu) {
  std::vector<unsigned> found;
  if (cpus.empty()) {
    if (const int rc = all.placement->choose(near, 1, all.cpus, &found); rc != 0) {
      return rc;
    }
    *cpu = found[0];
    return 0;
  }
  if (const int rc = all.placement->parse_list(cpus, &found); rc != 0) {
    return rc;
  }
  for (const unsigned candidate : found) {
    if (std::find(all.cpus.begin(), all.cpus.end(), candidate) == all.cpus.end()) {
      *cpu = candidate;
      return 0;
    }
  }
  base::log_error("each CPU of \"%s\" has a poller of this process already; name more of them",
                  cpus.c_str());
  return -EBUSY;
}

}  // namespace

uint32_t numa_distance(int node) {
  constexpr uint32_t kSameNode = 10;
  constexpr uint32_t kOtherNode = 20;  // where the firmware does not say
  constexpr uint32_t kMost = 255;
  const int cpu = sched_getcpu();
  // Not that of pollers(), which is made by the first thread that pins itself.
  std::unique_ptr<Placement> placement;
  if (node < 0 || cpu < 0 || Placement::create(&placement) != 0) {
    return kSameNode;
  }
  const int own = placement->numa_node_of(static_cast<unsigned>(cpu));
  if (own < 0 || own == node) {
    return kSameNode;
  }
  const uint32_t distance = placement->numa_distance(own, node);
  return distance == 0 ? kOtherNode : std::clamp(distance, kSameNode, kMost);
}

int pin_poller(const pmd::cores::Near& near, const std::string& cpus) {
  Pollers& all = pollers();
  const std::lock_guard lock(all.mutex);
  if (all.placement == nullptr) {
    if (const int rc = Placement::create(&all.placement); rc != 0) {
      return rc;
    }
  }
  t_own_cpu.drop();
  unsigned cpu = 0;
  if (const int rc = choose(all, near, cpus, &cpu); rc != 0) {
    return rc;
  }
  if (const int rc = pmd::cores::pin_this_thread(cpu); rc != 0) {
    return rc;
  }
  const std::string before = all.placement->sharing_warning(all.cpus);
  t_own_cpu.take(cpu);
  const std::string after = all.placement->sharing_warning(all.cpus);
  if (after != before) {
    base::log_warning("%s; give each poller a core of its own, or run fewer", after.c_str());
  }
  return static_cast<int>(cpu);
}

}  // namespace rio
