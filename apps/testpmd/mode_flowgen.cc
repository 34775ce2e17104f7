// flowgen: every port sends many flows, each with its own numbers, over all mailboxes and over all
// destIDs (queue pairs) of the peer that are its own to receive from.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

int check(const RunSetup& setup, std::string* error) {
  if (setup.options.verify && setup.options.flows > 1 && setup.size_bytes < kTagBytes) {
    *error =
        "flowgen --verify needs --size 8 at least, since shorter messages cannot name their "
        "flow; or give --flows 1";
    return -EINVAL;
  }
  if (setup.ports.size() * setup.options.flows > UINT16_MAX) {
    *error = "--flows " + std::to_string(setup.options.flows) + " on " +
             std::to_string(setup.ports.size()) + " ports are more than 65535 flows; give fewer";
    return -EINVAL;
  }
  return 0;
}

int make_streams(const RunSetup& setup, std::vector<std::unique_ptr<Stream>>* streams,
                 std::string* error) {
  const uint32_t mailboxes = mailboxes_for(setup.options, setup.size_bytes);
  const uint32_t flows = setup.options.flows;
  const auto ways_of = [mailboxes, flows](const TestPort& port) {
    std::vector<Way> ways;
    for (uint32_t flow = 0; flow < flows; ++flow) {
      ways.push_back({.dest_id = port.peer_dest_id(),
                      .flow = static_cast<uint16_t>(port.index() * flows + flow),
                      .mbox = static_cast<uint8_t>(flow % mailboxes)});
    }
    return ways;
  };
  return make_generators(setup, flows, ways_of, streams, error);
}

}  // namespace

const Mode& flowgen_mode() {
  static constexpr Mode kMode = {.name = "flowgen",
                                 .help = "every port sends --flows flows over all mailboxes",
                                 .max_bytes = regs::kMessageBytesMax,
                                 .takes_offset = true,
                                 .latency_of = "one way, queueing included",
                                 .check = check,
                                 .make_streams = make_streams};
  return kMode;
}

}  // namespace rio::testpmd
