// rxonly: one direction. Ports receive; of two ports wired to each other, the second one sends.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

std::vector<Way> ways_of(const RunSetup& setup, const TestPort& port) {
  const bool sends = port.peer() != nullptr && port.peer()->index() <= port.index();
  return sends ? ways_by_letter(setup, port) : std::vector<Way>{};
}

int check(const RunSetup& setup, std::string* error) {
  for (const auto& port : setup.ports) {
    if (setup.options.verify && port->peer() == nullptr) {
      *error = "rxonly cannot --verify what another process sends (port " +
               std::to_string(port->index()) + "): leave --verify out";
      return -EINVAL;
    }
  }
  return 0;
}

}  // namespace

constinit const Mode kRxonlyMode = {
    .name = "rxonly",
    .max_bytes = regs::kMessageBytesMax,
    .takes_offset = true,
    .latency_of = "one way, queueing included",
    .check = check,
    .make_streams = [](const RunSetup& setup, Streams* streams, std::string* error) {
      return make_generators(setup, 1, ways_of, streams, error);
    }};

}  // namespace rio::testpmd
