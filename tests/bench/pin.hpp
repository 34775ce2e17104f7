/// @file
/// Pins the processes of a benchmark.
#pragma once

#include <sched.h>

namespace rio::bench {

/// Pins the calling thread to the nth CPU that it may use, counted from the last one. Does nothing
/// if there are fewer.
inline void pin(unsigned nth) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (CPU_ISSET(cpu, &allowed) && nth-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
  }
}

}  // namespace rio::bench
