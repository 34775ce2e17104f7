// flowgen: every port sends many flows, each with its own numbers, over all mailboxes and over all
// destIDs (queue pairs) of the peer that are its own to receive from.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

std::vector<Way> ways_of(const RunSetup& setup, const TestPort& port) {
  std::vector<Way> ways;
  for (uint32_t flow = 0; flow < setup.options.flows; ++flow) {
    ways.push_back({.dest_id = port.peer_dest_id(),
                    .flow = static_cast<uint16_t>(port.index() * setup.options.flows + flow),
                    .mbox = static_cast<uint8_t>(flow % mailboxes_for(setup))});
  }
  return ways;
}

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

}  // namespace

constinit const Mode kFlowgenMode = {
    .name = "flowgen",
    .max_bytes = regs::kMessageBytesMax,
    .takes_offset = true,
    .latency_of = "one way, queueing included",
    .check = check,
    .make_streams = [](const RunSetup& setup, Streams* streams, std::string* error) {
      return make_generators(setup, setup.options.flows, ways_of, streams, error);
    }};

}  // namespace rio::testpmd
