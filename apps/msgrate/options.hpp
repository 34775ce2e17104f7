/// @file
/// Command-line options of rio-msgrate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rio::msgrate {

enum class Role : uint8_t { kBoth, kSend, kRecv };
enum class Api : uint8_t { kSkifCh, kTag };
enum class Test : uint8_t { kRate, kLatency, kBandwidth, kCopied };

struct Options {
  std::string card;  ///< empty: a fabric of this run's own
  uint32_t peer = 0;
  Role role = Role::kBoth;
  Api api = Api::kSkifCh;
  Test test = Test::kRate;
  uint32_t size_bytes = 16;
  uint32_t count = 1000000;
  uint32_t repeats = 1;
  std::vector<unsigned> cpus;  ///< for kBoth: the sender's, the receiver's, more that are not used
  bool json = false;
};

/// @param code gets the exit code if the program ends here. @return whether to go on.
[[nodiscard]] bool parse_options(int argc, char** argv, Options* out, int* code);

}  // namespace rio::msgrate
