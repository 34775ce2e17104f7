#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {

uint32_t sender_to(const RunSetup& setup, const TestPort& port) {
  for (const auto& other : setup.ports) {
    if (other->peer() == &port) {
      return other->index();
    }
  }
  return port.index();
}

std::vector<Way> ways_by_letter(const RunSetup& setup, const TestPort& port) {
  const uint32_t mailboxes = mailboxes_for(setup.options, setup.size_bytes);
  std::vector<Way> ways;
  for (uint32_t i = 0; i < mailboxes * regs::kLetters; ++i) {
    ways.push_back({.dest_id = port.peer_dest_id(),
                    .flow = static_cast<uint16_t>(port.index()),
                    .mbox = static_cast<uint8_t>(i / regs::kLetters)});
  }
  return ways;
}

int make_generators(const RunSetup& setup, uint32_t flows, const WaysOf& ways_of,
                    std::vector<std::unique_ptr<Stream>>* streams, std::string* error) {
  for (const auto& port : setup.ports) {
    std::unique_ptr<Stream> stream;
    const auto expected = static_cast<uint16_t>(sender_to(setup, *port) * flows);
    const int rc = Generator::create(setup, *port, ways_of(*port), expected, &stream, error);
    if (rc != 0) {
      return rc;
    }
    streams->push_back(std::move(stream));
  }
  return 0;
}

Generator::Generator(const RunSetup& setup, TestPort& port, uint16_t expected_flow)
    : port_(port), sink_(setup, port, expected_flow, *this), count_(setup.options.count) {}

int Generator::create(const RunSetup& setup, TestPort& port, std::vector<Way> ways,
                      uint16_t expected_flow, std::unique_ptr<Stream>* out, std::string* error) {
  std::unique_ptr<Generator> stream(new Generator(setup, port, expected_flow));
  if (!ways.empty()) {
    const int rc = TxSource::create(setup, port, std::move(ways), *stream, &stream->source_, error);
    if (rc != 0) {
      return rc;
    }
  } else if (setup.ports[sender_to(setup, port)]->peer() == &port) {
    stream->set_finished();  // the run ends when the sender, which is here too, has
  }
  *out = std::move(stream);
  return 0;
}

uint32_t Generator::turn(bool may_send) noexcept {
  uint32_t moved = sink_.turn();
  if (source_) {
    moved += source_->turn(may_send);
    moved += source_->reap();
    if (source_->finished()) [[unlikely]] {
      set_finished();
    }
  } else if (count_ != 0 && stats.rx_messages.get() >= count_) {
    set_finished();
  }
  return moved;
}

std::string Generator::label() const {
  return "port " + std::to_string(port_.index());
}

}  // namespace rio::testpmd
