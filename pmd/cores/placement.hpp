/// @file
/// Places pollers on the cores nearest to the card, one each.
///
/// A CPU is what the kernel numbers (an lcore pinned to a CPU has its number); a core has one CPU,
/// or several if it is multithreaded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

struct hwloc_topology;

namespace rio::pmd::cores {

/// The device that pollers should be near. The address counts first, then the node; without either
/// all CPUs are alike.
struct Near {
  std::string pci_address;  ///< "0000:03:00.0", empty if unknown or emulated
  int numa_node = -1;       ///< as the kernel numbers it, -1 if unknown
};

/// The CPUs of a machine. Constant after create(); any thread. 0 or -errno, the reason in the log.
class Placement {
 public:
  /// This machine, with the CPUs that cgroup and affinity leave to the calling thread: call it
  /// before the thread is pinned. About 20 ms. @param fs_root not empty: the machine of a copy of a
  /// system instead, a folder with its sys and proc. @return 0, or -EIO with hwloc's reason.
  [[nodiscard]] static int create(std::unique_ptr<Placement>* out, const std::string& fs_root = "");
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  /// All CPUs that may be used, ascending.
  [[nodiscard]] const std::vector<unsigned>& cpus() const { return usable_; }

  /// Choose CPUs for pollers: whole free cores first, the nearest of them first; then second
  /// hyperthreads; then taken CPUs (see sharing_warning()). @param count 1 to 4096. @param taken
  /// CPUs that have work already, any. @return 0, -EINVAL.
  [[nodiscard]] int choose(const Near& near, unsigned count, std::span<const unsigned> taken,
                           std::vector<unsigned>* out) const;

  /// Parse a user's list of numbers and ranges, "1,3-5"; the order stays. @return 0, or -EINVAL:
  /// not a list, or a CPU that does not exist, may not be used, or is named twice.
  [[nodiscard]] int parse_list(const std::string& text, std::vector<unsigned>* out) const;

  /// The nearest usable CPUs: those of the card's own part of the machine, else of the next node.
  /// Ascending; all if the card's place is unknown.
  [[nodiscard]] std::vector<unsigned> nearest(const Near& near) const;

  /// A warning for the user if two of these pollers share a CPU, or are hyperthreads of one core.
  /// Else empty.
  [[nodiscard]] std::string sharing_warning(std::span<const unsigned> cpus) const;

  /// NUMA node of a CPU as the kernel numbers it, -1 if there is none.
  [[nodiscard]] int numa_node_of(unsigned cpu) const;

  /// Distance of two nodes by the firmware's table: 10 is a node to itself, 20 twice as far. 0: no
  /// entry.
  [[nodiscard]] unsigned numa_distance(int from, int to) const;

 private:
  explicit Placement(hwloc_topology* topology);
  [[nodiscard]] int load(const std::string& fs_root);
  /// Rank of a CPU; 0 is nearest.
  [[nodiscard]] unsigned distance(const Near& near, unsigned cpu) const;
  /// Number of a CPU's core; equal for CPUs of one core.
  [[nodiscard]] unsigned core_of(unsigned cpu) const;

  hwloc_topology* topology_;
  std::vector<unsigned> usable_;
};

/// Pin the calling thread. @return 0, or -errno with the reason in the log.
[[nodiscard]] int pin_this_thread(unsigned cpu);

}  // namespace rio::pmd::cores
