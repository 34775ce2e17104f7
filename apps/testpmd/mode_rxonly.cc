// rxonly: one direction. Ports receive; of two ports wired to each other, the second one sends.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

bool sends(const TestPort& port) {
  return port.peer() != nullptr && port.peer()->index() <= port.index();
}

int check(const RunSetup& setup, std::string* error) {
  if (setup.options.verify) {
    for (const auto& port : setup.ports) {
      if (port->peer() == nullptr) {
        *error = "rxonly cannot --verify what another process sends (port " +
                 std::to_string(port->index()) + "): leave --verify out";
        return -EINVAL;
      }
    }
  }
  return 0;
}

int make_streams(const RunSetup& setup, std::vector<std::unique_ptr<Stream>>* streams,
                 std::string* error) {
  const auto ways = [&setup](const TestPort& port) {
    return sends(port) ? ways_by_letter(setup, port) : std::vector<Way>{};
  };
  return make_generators(setup, 1, ways, streams, error);
}

}  // namespace

const Mode& rxonly_mode() {
  static constexpr Mode kMode = {
      .name = "rxonly",
      .help = "ports receive and drop; of two ports wired together the second sends",
      .max_bytes = regs::kMessageBytesMax,
      .takes_offset = true,
      .latency_of = "one way, queueing included",
      .check = check,
      .make_streams = make_streams};
  return kMode;
}

}  // namespace rio::testpmd
