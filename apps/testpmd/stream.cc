#include "apps/testpmd/stream.hpp"

#include <algorithm>

namespace rio::testpmd {

uint32_t sender_to(const RunSetup& setup, const TestPort& port) {
  for (const auto& other : setup.ports) {
    if (other->peer() == &port) {
      return other->index;
    }
  }
  return port.index;
}

uint32_t mailboxes_for(const RunSetup& setup) {
  const uint32_t all =
      setup.size_bytes <= regs::kSegmentBytesMax ? regs::kMailboxes : regs::kMultiMailboxes;
  return setup.options.mailboxes == 0 ? all : std::min(setup.options.mailboxes, all);
}

Stream::Stream(const RunSetup& setup, TestPort& port, TestPort& to)
    : port_(port),
      pool_(setup.pool),
      verifier_(setup.verifier),
      probe_(to.peer() == nullptr ? nullptr : &to.peer()->probe),
      size_bytes_(setup.size_bytes),
      offset_bytes_(setup.options.offset_bytes),
      burst_(static_cast<uint16_t>(setup.options.burst)),
      flow_(static_cast<uint16_t>(to.index)),
      expected_flow_(static_cast<uint16_t>(sender_to(setup, port))),
      left_(setup.options.count == 0 ? UINT64_MAX : setup.options.count) {}

void Stream::note_failure(pmd::Status status) noexcept {
  stats.count_status(status);
  pause_.note(status);
  if (probe_ != nullptr) {
    probe_->give_up();
  }
}

}  // namespace rio::testpmd
