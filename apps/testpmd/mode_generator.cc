// txonly, rxonly and flowgen: a port sends, or receives, or both.
#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

/// Where the next message goes; a generator takes its ways in turn. Neighbours that are equal are
/// cheaper, and four letters of a mailbox can fly.
struct Way {
  uint32_t dest_id;
  uint16_t flow;
  uint8_t mbox;
};

/// One port. It always takes what comes in, since what is refused comes again and again. Payloads
/// that it sends lie at --offset in buffers of its own; those that the card cannot take there are
/// bounced.
class Generator final : public Stream {
 public:
  /// @param ways empty: it only receives. @param flows of each port: flow numbers are port index *
  /// flows and up.
  Generator(const RunSetup& setup, TestPort& port, std::vector<Way> ways, uint32_t flows);

  [[nodiscard]] int open(std::string* error) override;
  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override { return in_flight_ == 0 && ready_ == 0; }
  [[nodiscard]] bool sends() const override { return !ways_.empty(); }

 private:
  uint32_t receive() noexcept;
  uint32_t count_good(uint32_t n) noexcept;
  uint32_t send(bool may_send) noexcept;
  uint32_t prepare(uint32_t n) noexcept;
  void advance(uint32_t sent) noexcept;
  uint32_t reap() noexcept;
  void failed(const pmd::TxDone& done) noexcept;

  pmd::SharedRxQueue& rx_;
  pmd::TxQueue& tx_;
  std::vector<Way> ways_;
  uint32_t way_ = 0;    // the next one
  uint32_t ready_ = 0;  // messages that are written and not sent
  uint32_t free_top_ = 0;
  SendBuffers send_;
  std::vector<uint64_t> free_;         // bus addresses of buffers, a stack
  std::vector<pmd::TxMessage> slots_;  // one for each way, and a burst more: ways in turn
  std::vector<uint16_t> flows_;        // of the slots
  pmd::TxDone done_[kBurstMax];
  pmd::RxMessage messages_[kBurstMax];
  pmd::RxBuffer buffers_[kBurstMax];
};

Generator::Generator(const RunSetup& setup, TestPort& port, std::vector<Way> ways, uint32_t flows)
    : Stream(setup, port),
      rx_(port.pair().shared()),
      tx_(port.pair().tx()),
      ways_(std::move(ways)),
      send_(size_bytes_, offset_bytes_, port.card().caps().tx_addr_align) {
  const uint32_t sender = sender_to(setup, port);
  expected_flow_ = static_cast<uint16_t>(sender * flows);
  if (ways_.empty() && setup.ports[sender]->peer() == &port) {
    set_finished();  // the run ends when the sender, which is here too, has
  }
}

int Generator::open(std::string* error) {
  constexpr uint32_t kBuffers = 512;
  if (!sends()) {
    return 0;
  }
  if (send_.allocate(port_.card().bus(), kBuffers, error) != 0) {
    return -EINVAL;
  }
  for (uint32_t i = kBuffers; i-- > 0;) {
    free_.push_back(send_.buffer(i));
  }
  free_top_ = kBuffers;
  slots_.resize(ways_.size() + burst_);
  flows_.resize(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Way& way = ways_[i % ways_.size()];
    const uint64_t buffer = free_[i % kBuffers];
    flows_[i] = way.flow;
    slots_[i] = {.iova = send_.wire(buffer),
                 .cookie = buffer,
                 .dest_id = way.dest_id,
                 .length_bytes = static_cast<uint16_t>(size_bytes_),
                 .mbox = way.mbox,
                 .flags = 0};
  }
  return 0;
}

uint32_t Generator::count_good(uint32_t n) noexcept {
  uint32_t good = 0;
  if (verifier_.verifies()) {
    const uint64_t now = rte_rdtsc();
    for (uint32_t i = 0; i < n; ++i) {
      good += take_message(messages_[i], now) ? 1 : 0;
    }
    return good;
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (messages_[i].status == pmd::Status::kOk) [[likely]] {
      ++good;
    } else {
      stats.count_status(messages_[i].status);
    }
  }
  return good;
}

/// Take what comes into the shared receive queue, check it, and give the buffers back.
uint32_t Generator::receive() noexcept {
  const uint32_t n = rx_.burst(messages_, burst_);
  if (n == 0) {
    return 0;
  }
  const uint32_t good = count_good(n);
  for (uint32_t i = 0; i < n; ++i) {
    buffers_[i] = {.iova = messages_[i].cookie, .cookie = messages_[i].cookie};
  }
  port_.shared_posted -= n - rx_.post(buffers_, static_cast<uint16_t>(n));
  if (!verifier_.verifies() && good != 0) {
    port_.probe.received(good, rte_rdtsc, &latency);
  }
  stats.rx_messages.add(good);
  stats.rx_bytes.add(uint64_t{good} * size_bytes_);
  return n;
}

/// Write messages into slots way_ + ready_ … way_ + n. @return how many are ready.
uint32_t Generator::prepare(uint32_t n) noexcept {
  const uint64_t now = rte_rdtsc();
  while (ready_ < n && free_top_ > 0) {
    const uint32_t at = way_ + ready_;
    const uint64_t buffer = free_[--free_top_];
    verifier_.write(send_.payload(buffer), flows_[at], now);
    if (send_.bounced()) {
      send_.bounce(buffer);
    }
    slots_[at].iova = send_.wire(buffer);
    slots_[at].cookie = buffer;
    ++ready_;
  }
  return ready_;
}

/// Send up to a burst. @param may_send false: only what is written already. @return sent.
uint32_t Generator::send(bool may_send) noexcept {
  if (pause_.pausing()) [[unlikely]] {
    return 0;
  }
  // Messages that have a number go out even when the run drains.
  auto n = may_send ? static_cast<uint32_t>(std::min<uint64_t>(burst_, left_)) : ready_;
  if (verifier_.verifies()) {
    n = std::min(prepare(n), n);
  } else if (send_.bounced()) {
    for (uint32_t i = 0; i < n; ++i) {
      send_.bounce(slots_[way_ + i].cookie);
    }
  }
  if (n == 0) {
    return 0;
  }
  const uint64_t tsc = probe_tsc();
  const uint32_t sent = tx_.burst(&slots_[way_], static_cast<uint16_t>(n));
  if (sent == 0) {
    return 0;
  }
  if (probe_ != nullptr) {
    probe_->sent(sent, tsc);
  }
  advance(sent);
  count_sent(sent);
  (send_.bounced() ? stats.bytes_copied : stats.bytes_placed).add(uint64_t{sent} * size_bytes_);
  return sent;
}

/// The next slot, always below ways_.size(); what is ready beyond it moves along.
void Generator::advance(uint32_t sent) noexcept {
  const auto ways = static_cast<uint32_t>(ways_.size());
  const uint32_t from = way_ + sent;
  way_ = from;
  while (way_ >= ways) {
    way_ -= ways;
  }
  if (!verifier_.verifies()) {
    return;
  }
  ready_ -= sent;
  for (uint32_t i = 0; i < ready_ && way_ != from; ++i) {  // ascending: the copy goes down
    slots_[way_ + i].iova = slots_[from + i].iova;
    slots_[way_ + i].cookie = slots_[from + i].cookie;
  }
}

void Generator::failed(const pmd::TxDone& done) noexcept {
  Tag tag{.flow = ways_.front().flow};
  if (size_bytes_ >= kTagBytes) {
    (void)read_tag(send_.payload(done.cookie), size_bytes_, 0, &tag);
  }
  verifier_.failed(tag.flow, done.status);
}

/// Take completions back. @return how many.
uint32_t Generator::reap() noexcept {
  const uint32_t n =
      reap_sent(tx_, done_, static_cast<uint16_t>(kBurstMax), [this](const pmd::TxDone& done) {
        if (verifier_.verifies()) {
          failed(done);
        }
      });
  for (uint32_t i = 0; verifier_.verifies() && i < n; ++i) {
    free_[free_top_++] = done_[i].cookie;
  }
  return n;
}

uint32_t Generator::turn(bool may_send) noexcept {
  uint32_t moved = receive();
  if (sends()) {
    moved += send(may_send);
    moved += reap();
    if (left_ == 0) [[unlikely]] {
      set_finished();
    }
  } else if (stats.rx_messages.get() >= left_) {
    set_finished();
  }
  return moved;
}

/// To the port's peer, one way for each letter of the mailboxes that messages of this size may
/// take.
std::vector<Way> ways_by_letter(const RunSetup& setup, const TestPort& port) {
  std::vector<Way> ways;
  for (uint32_t i = 0; i < mailboxes_for(setup) * regs::kLetters; ++i) {
    ways.push_back({.dest_id = port.peer_dest_id(),
                    .flow = static_cast<uint16_t>(port.index),
                    .mbox = static_cast<uint8_t>(i / regs::kLetters)});
  }
  return ways;
}

/// Every port sends; what comes in is taken and dropped.
std::unique_ptr<Stream> make_txonly(const RunSetup& setup, TestPort& port) {
  return std::make_unique<Generator>(setup, port, ways_by_letter(setup, port), 1);
}

/// One direction. Ports receive; of two ports wired to each other, the second one sends.
std::unique_ptr<Stream> make_rxonly(const RunSetup& setup, TestPort& port) {
  const bool sends = port.peer() != nullptr && port.peer()->index <= port.index;
  return std::make_unique<Generator>(setup, port,
                                     sends ? ways_by_letter(setup, port) : std::vector<Way>{}, 1);
}

/// Every port sends many flows, each with its own numbers, over all mailboxes.
std::unique_ptr<Stream> make_flowgen(const RunSetup& setup, TestPort& port) {
  const uint32_t flows = setup.options.flows;
  std::vector<Way> ways;
  for (uint32_t flow = 0; flow < flows; ++flow) {
    ways.push_back({.dest_id = port.peer_dest_id(),
                    .flow = static_cast<uint16_t>(port.index * flows + flow),
                    .mbox = static_cast<uint8_t>(flow % mailboxes_for(setup))});
  }
  return std::make_unique<Generator>(setup, port, std::move(ways), flows);
}

int check_rxonly(const RunSetup& setup, std::string* error) {
  for (const auto& port : setup.ports) {
    if (setup.options.verify && port->peer() == nullptr) {
      return fail(error,
                  "rxonly cannot --verify what another process sends (port %u): leave --verify out",
                  port->index);
    }
  }
  return 0;
}

int check_flowgen(const RunSetup& setup, std::string* error) {
  const uint32_t flows = setup.options.flows;
  if (setup.options.verify && flows > 1 && setup.size_bytes < kTagBytes) {
    return fail(error,
                "flowgen --verify needs --size 8 at least, since shorter messages cannot name "
                "their flow; or give --flows 1");
  }
  if (setup.ports.size() * flows > UINT16_MAX) {
    return fail(error, "--flows %u on %zu ports are more than 65535 flows; give fewer", flows,
                setup.ports.size());
  }
  return 0;
}

constexpr const char* kLatency = "one way, queueing included";

}  // namespace

constinit const Mode kTxonlyMode = {
    .name = "txonly", .latency_of = kLatency, .make_streams = make_each<make_txonly>};
constinit const Mode kRxonlyMode = {.name = "rxonly",
                                    .latency_of = kLatency,
                                    .check = check_rxonly,
                                    .make_streams = make_each<make_rxonly>};
constinit const Mode kFlowgenMode = {.name = "flowgen",
                                     .latency_of = kLatency,
                                     .check = check_flowgen,
                                     .make_streams = make_each<make_flowgen>};

}  // namespace rio::testpmd
