// txonly: every port sends; what comes in is taken and dropped.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {

constinit const Mode kTxonlyMode = {
    .name = "txonly",
    .max_bytes = regs::kMessageBytesMax,
    .takes_offset = true,
    .latency_of = "one way, queueing included",
    .check = nullptr,
    .make_streams = [](const RunSetup& setup, Streams* streams, std::string* error) {
      return make_generators(setup, 1, ways_by_letter, streams, error);
    }};

}  // namespace rio::testpmd
