#include <array>

#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {

std::span<const Mode* const> mode_table() {
  static const std::array<const Mode*, 8> kModes = {
      &io_mode(),       &txonly_mode(),    &rxonly_mode(),   &flowgen_mode(),
      &pingpong_mode(), &dedicated_mode(), &doorbell_mode(), &rdma_mode()};
  return kModes;
}

const Mode* find_mode(std::string_view name) {
  for (const Mode* mode : mode_table()) {
    if (name == mode->name) {
      return mode;
    }
  }
  return nullptr;
}

}  // namespace rio::testpmd
