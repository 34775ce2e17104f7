// rxonly: one direction. Ports receive; of two ports wired to each other, the second one sends.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

bool sends(const Port& port) {
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
  const uint32_t mailboxes = mailboxes_for(setup.options, setup.size_bytes);
  for (const auto& port : setup.ports) {
    std::vector<Way> ways;
    for (uint32_t i = 0; sends(*port) && i < mailboxes * regs::kLetters; ++i) {
      ways.push_back({.dest_id = port->peer_dest_id(),
                      .flow = static_cast<uint16_t>(port->index()),
                      .mbox = static_cast<uint8_t>(i / regs::kLetters)});
    }
    std::unique_ptr<Stream> stream;
    const int rc =
        Generator::create(setup, *port, std::move(ways),
                          static_cast<uint16_t>(sender_to(setup, *port)), &stream, error);
    if (rc != 0) {
      return rc;
    }
    streams->push_back(std::move(stream));
  }
  return 0;
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
