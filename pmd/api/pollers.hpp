/// @file
/// The CPUs on which this process polls.
#pragma once

#include <cstdint>
#include <string>

#include "pmd/cores/placement.hpp"

namespace rio {

/// Pin the calling thread to a CPU that no other poller of the process has; it keeps it until it
/// pins itself anew, or ends. A warning tells when pollers share a core. Any thread; control path.
/// The CPUs that may be used are those of the thread that calls this first.
/// @param cpus empty: the CPU nearest to `near`; else a list, "2,4-7": the first free one of it.
/// @return the CPU; -EINVAL (list), -EBUSY (each CPU of the list has a poller), or as
/// Placement::create() and pin_this_thread().
[[nodiscard]] int pin_poller(const pmd::cores::Near& near, const std::string& cpus);

/// NUMA distance of a node from the CPU that the calling thread runs on. Takes about 20 ms. Any
/// thread. @param node as the kernel numbers it; -1: unknown. @return as Endpoint::numa_distance().
[[nodiscard]] uint32_t numa_distance(int node);

}  // namespace rio
