// doorbell: every port sends type 10 doorbells and counts those that come; the 16 bits are numbers.
#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

constexpr uint32_t kDoorbellBytes = 2;

/// A port's doorbells, both ways.
class DoorbellStream final : public Stream {
 public:
  DoorbellStream(const RunSetup& setup, TestPort& port)
      : Stream(setup, port), tx_(port.pair().tx()), rx_(port.pair().doorbells()) {
    for (pmd::TxMessage& message : messages_) {
      message = {.info = 0,
                 .cookie = 0,
                 .dest_id = port.peer_dest_id(),
                 .length_bytes = kDoorbellBytes,
                 .mbox = 0,
                 .flags = pmd::TxFlags::kDoorbell};
    }
  }

  uint32_t turn(bool may_send) noexcept override;

 private:
  uint32_t receive() noexcept;
  uint32_t send() noexcept;

  pmd::TxQueue& tx_;
  pmd::DoorbellQueue& rx_;
  uint64_t next_ = 0;  // number of the next doorbell
  pmd::TxMessage messages_[kBurstMax];
  pmd::DoorbellEvent events_[kBurstMax];
  pmd::TxDone done_[kBurstMax];
};

uint32_t DoorbellStream::receive() noexcept {
  const uint32_t n = rx_.burst(events_, burst_);
  if (n == 0) {
    return 0;
  }
  for (uint32_t i = 0; verifier_.verifies() && i < n; ++i) {
    const uint64_t expected = verifier_.expected(expected_flow_);
    const auto ahead = static_cast<int16_t>(events_[i].info - static_cast<uint16_t>(expected));
    verifier_.got_number(expected_flow_, expected + static_cast<uint64_t>(int64_t{ahead}),
                         kDoorbellBytes);
  }
  port_.probe.received(n, rte_rdtsc, &latency);
  stats.rx_messages.add(n);
  stats.rx_bytes.add(uint64_t{n} * kDoorbellBytes);
  return n;
}

uint32_t DoorbellStream::send() noexcept {
  const auto n = static_cast<uint32_t>(std::min<uint64_t>(burst_, left_));
  for (uint32_t i = 0; i < n; ++i) {
    messages_[i].info = (next_ + i) & 0xFFFF;
  }
  const uint64_t tsc = probe_tsc();
  const uint32_t sent = tx_.burst(messages_, static_cast<uint16_t>(n));
  if (probe_ != nullptr) {
    probe_->sent(sent, tsc);
  }
  for (uint32_t i = 0; i < sent; ++i) {
    next_ = verifier_.take_number(flow_) + 1;
  }
  count_sent(sent);
  return sent;
}

uint32_t DoorbellStream::turn(bool may_send) noexcept {
  uint32_t moved = receive();
  if (left_ == 0) [[unlikely]] {
    set_finished();
  } else if (may_send && !pause_.pausing()) {
    moved += send();
  }
  return moved + reap_sent(tx_, done_, kBurstMax, [this](const pmd::TxDone& done) {
           verifier_.failed(flow_, done.status);
         });
}

int check(const RunSetup& setup, std::string* error) {
  for (const auto& port : setup.ports) {
    if ((port->pair().rings() & pmd::ring_bit(regs::Ring::kBarrier)) != 0) {
      return fail(error,
                  "%s takes half of all doorbells for barriers; start rio-testpmd with --mode "
                  "doorbell",
                  port->name.c_str());
    }
  }
  return 0;
}

std::string describe(const RunSetup& /*setup*/) {
  return "16 bits";
}

}  // namespace

constinit const Mode kDoorbellMode = {.name = "doorbell",
                                      .max_bytes = kTransferBytesMax,
                                      .takes_offset = false,
                                      .latency_of = "one way, queueing included",
                                      .check = check,
                                      .make_streams = make_each<make_stream<DoorbellStream>>,
                                      .describe = describe};

}  // namespace rio::testpmd
