#include "apps/testpmd/generator.hpp"

namespace rio::testpmd {

std::vector<Way> ways_by_letter(const RunSetup& setup, const TestPort& port) {
  std::vector<Way> ways;
  for (uint32_t i = 0; i < mailboxes_for(setup) * regs::kLetters; ++i) {
    ways.push_back({.dest_id = port.peer_dest_id(),
                    .flow = static_cast<uint16_t>(port.index()),
                    .mbox = static_cast<uint8_t>(i / regs::kLetters)});
  }
  return ways;
}

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

int Generator::allocate(std::string* error) {
  constexpr uint32_t kBuffers = 512;
  if (const int rc = send_.allocate(port_.card().bus(), kBuffers); rc != 0) {
    *error = "no memory for " + std::to_string(kBuffers) +
             " buffers to send from; reserve more "
             "hugepages or give EAL more memory (-m 512)";
    return rc;
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
  if (verifier_.verifies()) {
    Tag tag{.flow = ways_.front().flow};
    if (size_bytes_ >= kTagBytes) {
      (void)read_tag(send_.payload(done.cookie), size_bytes_, 0, &tag);
    }
    verifier_.failed(tag.flow, done.status);
  }
}

/// Take completions back. @return how many.
uint32_t Generator::reap() noexcept {
  const uint32_t n = reap_sent(tx_, done_, static_cast<uint16_t>(kBurstMax),
                               [this](const pmd::TxDone& done) { failed(done); });
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

}  // namespace rio::testpmd
