// A card of rio-cardsim's command line: whatever it is, it is refused or in range.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fpga/cardsim/card_spec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool kQuiet = (stderr = std::fopen("/dev/null", "we")) != nullptr;  // complaints
  static_cast<void>(kQuiet);
  rio::cardsim::CardSpec spec;
  if (rio::cardsim::parse_card_spec({reinterpret_cast<const char*>(data), size}, &spec) != 0) {
    return 0;
  }
  const rio::model::Config& model = spec.model;
  if (spec.name.empty() || spec.vectors < 1 || spec.vectors > 64 || model.queue_pairs < 1 ||
      model.queue_pairs > 31 || !(model.faults.rate >= 0.0 && model.faults.rate <= 1.0) ||
      spec.socket.size() > 107 || spec.monitor.size() > 107) {
    std::abort();
  }
  return 0;
}
