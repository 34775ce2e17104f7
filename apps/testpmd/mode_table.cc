#include <array>

#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {

std::span<const Mode* const> mode_table() {
  static constexpr std::array kModes = {&kIoMode,       &kTxonlyMode,   &kRxonlyMode,
                                        &kFlowgenMode,  &kPingpongMode, &kDedicatedMode,
                                        &kDoorbellMode, &kRdmaMode};
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
  error->assign("no mode '").append(name).append("'; there are ").append(names);
  return nullptr;
}

}  // namespace rio::testpmd
