#include <array>

#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {

std::span<const Mode* const> mode_table() {
  static constexpr std::array kModes = {&kIoMode,       &kTxonlyMode,   &kRxonlyMode,
                                        &kFlowgenMode,  &kPingpongMode, &kDedicatedMode,
                                        &kDoorbellMode, &kRdmaMode,     &kBarrierMode};
  return kModes;
}

const Mode* find_mode(std::string_view name, std::string* error) {
  std::string names;
  for (const Mode* mode : mode_table()) {
    if (name == mode->name) {
      return mode;
    }
    names += (names.empty() ? "" : ", ") + std::string(mode->name);
  }
  (void)fail(error, "--mode: no mode '%s'; there are %s", std::string(name).c_str(), names.c_str());
  return nullptr;
}

}  // namespace rio::testpmd
