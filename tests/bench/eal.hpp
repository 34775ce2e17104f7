/// @file
/// An EAL process for a benchmark under callgrind: ordinary memory, no PCI devices, nothing left in
/// files. Plug-ins are found by LD_LIBRARY_PATH.
#pragma once

#include <string>
#include <vector>

namespace rio::bench {

/// Ends the program with a message if `good` is false.
void expect(bool good, const char* what);

/// rte_eal_init on one lcore, the first CPU that this process may use. @param more options, such as
/// {"-d", "librte_net_rio.so", "--vdev=net_rio0"}. Ends the program with EAL's message on failure.
void start_eal(const std::vector<std::string>& more);

}  // namespace rio::bench
