/// @file
/// The counts of rio-cardsim's cards, as JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fpga/cardsim/service.hpp"
#include "fpga/cardsim/sim_card.hpp"
#include "fpga/wire/switched/fabric.hpp"

namespace rio::cardsim {

/// Why rio-cardsim ended, and how its loop ran, for the report.
struct Ending {
  const char* why;  ///< of Service::run(), or "error"
  int signal;       ///< the signal that asked for it; 0: none
  int from_pid;  ///< sender of the signal; 0: a process of another PID namespace, or the terminal
  LoopCounts loop;
};

/// Make the report of docs/cardsim.md: one JSON object and a newline. @param fabric null: there is
/// none.
[[nodiscard]] std::string report(const Ending& ending,
                                 const std::vector<std::unique_ptr<SimCard>>& cards,
                                 wire::switched::Fabric* fabric);

/// Write the report to a file, or to stdout ("-"). @return 0, or -errno, reported on stderr.
[[nodiscard]] int write_report(const std::string& path, const std::string& text);

}  // namespace rio::cardsim
