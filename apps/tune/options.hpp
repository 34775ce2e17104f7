/// @file
/// Command-line options of rio-tune.
#pragma once

#include <cstdint>
#include <string>

namespace rio::tune {

struct Options {
  std::string card;    ///< of the sender; empty: emulated ones in a fabric of this run's own
  std::string other;   ///< of the receiver
  std::string output;  ///< path; "-": the profile goes to stdout; empty: where it is looked for
  uint32_t round_bytes = 8u << 20;  ///< that are sent of each size in a round
  uint32_t rounds = 5;
  bool json = false;
  bool force = false;  ///< also what noise has made
};

/// @param code gets the exit code if the program ends here. @return whether to go on.
[[nodiscard]] bool parse_options(int argc, char** argv, Options* out, int* code);

}  // namespace rio::tune
