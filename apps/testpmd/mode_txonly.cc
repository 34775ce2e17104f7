// txonly: every port sends; what comes in is taken and dropped.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

int check(const RunSetup&, std::string*) {
  return 0;
}

int make_streams(const RunSetup& setup, std::vector<std::unique_ptr<Stream>>* streams,
                 std::string* error) {
  const auto ways = [&setup](const TestPort& port) { return ways_by_letter(setup, port); };
  return make_generators(setup, 1, ways, streams, error);
}

}  // namespace

const Mode& txonly_mode() {
  static constexpr Mode kMode = {.name = "txonly",
                                 .help = "every port sends, and drops what comes in",
                                 .max_bytes = regs::kMessageBytesMax,
                                 .takes_offset = true,
                                 .latency_of = "one way, queueing included",
                                 .check = check,
                                 .make_streams = make_streams};
  return kMode;
}

}  // namespace rio::testpmd
