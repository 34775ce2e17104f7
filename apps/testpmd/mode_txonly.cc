// txonly: every port sends; what comes in is taken and dropped.
#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {
namespace {

int check(const RunSetup&, std::string*) {
  return 0;
}

int make_streams(const RunSetup& setup, std::vector<std::unique_ptr<Stream>>* streams,
                 std::string* error) {
  const uint32_t mailboxes = mailboxes_for(setup.options, setup.size_bytes);
  for (const auto& port : setup.ports) {
    std::vector<Way> ways;
    for (uint32_t i = 0; i < mailboxes * regs::kLetters; ++i) {
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
