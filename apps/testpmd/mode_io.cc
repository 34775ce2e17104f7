// io: what a port receives goes out again; the buffer that was received is the one that is sent.
#include <cstddef>
#include <cstring>

#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

// Statuses of a burst are gathered eight bytes at a time: one instruction a message.
static_assert(offsetof(pmd::RxMessage, length_bytes) == 24 &&
              offsetof(pmd::RxMessage, status) == 29 && sizeof(pmd::RxMessage) == 32);
static_assert(offsetof(pmd::TxDone, time_ticks) == 8 && offsetof(pmd::TxDone, status) == 12 &&
              offsetof(pmd::TxDone, retries) == 13 && sizeof(pmd::TxDone) == 16);
static_assert(static_cast<uint32_t>(pmd::Status::kOk) == 0);
constexpr uint64_t kRxStatusBits = uint64_t{0xFF} << 40;          // in bytes 24 to 31
constexpr uint64_t kTxStatusAndRetries = uint64_t{0xFFFF} << 32;  // in bytes 8 to 15

template <size_t kOffset, typename Struct>
uint64_t eight_bytes(const Struct& from) {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const uint8_t*>(&from) + kOffset, sizeof(word));
  return word;
}

/// Receives at one port and sends at another, or the same.
class Forwarder final : public Stream {
 public:
  Forwarder(const RunSetup& setup, TestPort& in, TestPort& out)
      : Stream(setup, in, out),
        out_(out),
        rx_(in.pair().shared()),
        tx_(out.pair().tx()),
        window_(setup.options.window),
        verify_(setup.options.verify),
        mailboxes_(mailboxes_for(setup)),
        ways_(mailboxes_ * regs::kLetters) {}
  ~Forwarder() override;

  [[nodiscard]] int open(std::string* error) override;
  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override { return in_flight_ == 0 && ready_ == 0; }

 private:
  uint32_t receive(bool may_send) noexcept;
  uint32_t keep_good(uint32_t n) noexcept;
  void send() noexcept;
  uint32_t reap(bool may_send) noexcept;
  uint32_t finish_sent(uint32_t n, bool may_send) noexcept;
  void post(uint32_t n) noexcept;
  void give_back(uint32_t n) noexcept;
  void add_new(uint64_t buffer) noexcept;

  TestPort& out_;
  pmd::SharedRxQueue& rx_;
  pmd::TxQueue& tx_;
  const uint32_t window_;
  const bool verify_;
  const uint32_t mailboxes_;
  const uint32_t ways_;  // a way for each letter of each mailbox
  // left_ counts those that are not ready yet.
  uint32_t owed_ = 0;   // failed messages whose buffers the receive queue took: to be sent anew
  uint32_t first_ = 0;  // slot of the first message to send, below mailboxes_
  uint32_t ready_ = 0;  // messages in slots_ from first_ on
  // Ways in turn: slots of four have a mailbox, so that its four letters fly, the driver looks at
  // one message in four anew, and forwarding writes only where the bytes are. As long as all ways
  // and two bursts.
  std::vector<pmd::TxMessage> slots_;
  std::vector<uint64_t> again_;  // buffers whose messages were refused: to be sent anew
  pmd::RxMessage received_[kBurstMax];
  pmd::TxDone done_[kBurstMax];
  pmd::RxBuffer buffers_[kBurstMax];
};

Forwarder::~Forwarder() {
  for (const uint64_t buffer : again_) {
    pool_.give(buffer);
  }
}

int Forwarder::open(std::string* error) {
  slots_.resize(ways_ + 2 * kBurstMax);
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i] = {.iova = 0,
                 .cookie = 0,
                 .dest_id = out_.peer_dest_id(),
                 .length_bytes = static_cast<uint16_t>(size_bytes_),
                 .mbox = static_cast<uint8_t>(i / regs::kLetters % mailboxes_),
                 .flags = 0};
  }
  if (window_ > rx_.free_count()) {
    return fail(error,
                "--window %u: beside its %u buffers the receive queue of %s has room for %u; give "
                "less, or a larger ring (--vdev …,rx_ring=4096)",
                window_, port_.shared_posted, port_.name.c_str(), rx_.free_count());
  }
  again_.reserve(pool_.free_count() + 2 * kSharedBuffers);
  for (uint32_t i = 0; i < window_; ++i) {
    const uint64_t buffer = pool_.take();
    if (buffer == 0) {
      return fail(error, "--window %u is more than there are buffers for; give less", window_);
    }
    again_.push_back(buffer);
  }
  return 0;
}

/// A buffer with a new message becomes ready; there is room. Not hot.
void Forwarder::add_new(uint64_t buffer) noexcept {
  pmd::TxMessage& slot = slots_[first_ + ready_++];
  slot.iova = buffer;
  slot.cookie = buffer;
  --left_;
  if (verify_) {
    verifier_.write(pool_.va(buffer), flow_, rte_rdtsc());
  }
}

void Forwarder::send() noexcept {
  const uint64_t tsc = verify_ ? 0 : probe_tsc();
  const uint32_t sent = tx_.burst(&slots_[first_], static_cast<uint16_t>(ready_));
  if (probe_ != nullptr) {
    probe_->sent(sent, tsc);
  }
  stats.tx_messages.add(sent);
  in_flight_ += sent;
  const uint32_t from = first_ + sent;
  first_ = from;
  while (first_ >= ways_) {
    first_ -= ways_;
  }
  ready_ -= sent;
  for (uint32_t i = 0; i < ready_ && first_ != from; ++i) {  // ascending: the copy goes down
    slots_[first_ + i].iova = slots_[from + i].iova;
    slots_[first_ + i].cookie = slots_[from + i].cookie;
  }
}

/// Leave out the failed ones among received_, and check the others. @return how many are left.
uint32_t Forwarder::keep_good(uint32_t n) noexcept {
  const uint64_t now = rte_rdtsc();
  uint32_t kept = 0;
  uint32_t bad = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const pmd::RxMessage& message = received_[i];
    const bool good = verify_ ? take_message(message, now) : message.status == pmd::Status::kOk;
    if (good) {
      received_[kept++] = message;
    } else {
      if (!verify_) {
        stats.count_status(message.status);
      }
      buffers_[bad++] = {.iova = message.cookie, .cookie = message.cookie};
    }
  }
  post(bad);
  return kept;
}

/// Take a burst and make it ready to send; when draining, and beyond --count, give it back.
/// @return messages.
uint32_t Forwarder::receive(bool may_send) noexcept {
  const uint32_t n = rx_.burst(received_, burst_);
  if (n == 0) {
    return 0;
  }
  port_.shared_posted -= n;
  pmd::TxMessage* slot = &slots_[first_ + ready_];
  uint64_t gathered = 0;
#pragma GCC unroll 8
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t buffer = received_[i].cookie;
    slot[i].iova = buffer;
    slot[i].cookie = buffer;
    gathered |= eight_bytes<24>(received_[i]);
  }
  uint32_t good = n;
  uint32_t onward = n;
  if ((gathered & kRxStatusBits) != 0 || verify_ || !may_send || left_ < n) [[unlikely]] {
    good = keep_good(n);
    onward = may_send ? static_cast<uint32_t>(std::min<uint64_t>(good, left_)) : 0;
    for (uint32_t i = 0; i < good; ++i) {
      const uint64_t buffer = received_[i].cookie;
      if (i >= onward) {
        buffers_[i - onward] = {.iova = buffer, .cookie = buffer};
        continue;
      }
      slot[i].iova = buffer;
      slot[i].cookie = buffer;
      if (verify_) {
        verifier_.write(pool_.va(buffer), flow_, rte_rdtsc());
      }
    }
  }
  if (!verify_ && good != 0) {
    port_.probe.received(good, rte_rdtsc, &latency);
  }
  stats.rx_messages.add(good);
  stats.rx_bytes.add(uint64_t{good} * size_bytes_);
  ready_ += onward;
  left_ -= onward;
  give_back(good - onward);
  return n;
}

/// Messages that are not sent on: their buffers are the receive queue's as far as it has fewer than
/// at first. The rest is kept, for the pool: the next run begins with as many.
void Forwarder::give_back(uint32_t n) noexcept {
  uint32_t to_post = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (port_.shared_posted + to_post >= kSharedBuffers) {
      again_.push_back(buffers_[i].cookie);  // never grows: it holds all buffers
    } else {
      buffers_[to_post++] = buffers_[i];
    }
  }
  post(to_post);
}

/// Give buffers_ to the receive queue.
void Forwarder::post(uint32_t n) noexcept {
  if (n != 0) {
    port_.shared_posted += rx_.post(buffers_, static_cast<uint16_t>(n));
  }
}

/// Sort out done_: what was refused is sent anew, or its buffer is kept while enough lie in the
/// receive queue. @return how many of buffers_ are to be posted.
uint32_t Forwarder::finish_sent(uint32_t n, bool may_send) noexcept {
  uint32_t to_post = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const pmd::TxDone& done = done_[i];
    const bool failed = done.status != pmd::Status::kOk;
    stats.retries.add(done.retries);
    if (failed) {
      note_failure(done.status);
      if (verify_) {
        verifier_.failed(flow_, done.status);
      }
    }
    owed_ += failed ? 1 : 0;
    left_ += failed ? 1 : 0;
    const bool enough = port_.shared_posted + to_post >= kSharedBuffers;
    if (enough && (owed_ != 0 || left_ == 0 || !may_send)) {
      owed_ -= owed_ != 0 ? 1 : 0;
      again_.push_back(done.cookie);  // never grows: it holds all buffers
    } else {
      buffers_[to_post++] = {.iova = done.cookie, .cookie = done.cookie};
    }
  }
  return to_post;
}

uint32_t Forwarder::reap(bool may_send) noexcept {
  const uint32_t n = tx_.reap(done_, burst_);
  if (n == 0) {
    return 0;
  }
  uint64_t gathered = 0;
#pragma GCC unroll 8
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t buffer = done_[i].cookie;
    buffers_[i].iova = buffer;
    buffers_[i].cookie = buffer;
    gathered |= eight_bytes<8>(done_[i]);
  }
  uint32_t to_post = n;
  if ((gathered & kTxStatusAndRetries) != 0 || owed_ != 0 || left_ == 0 || !may_send) [[unlikely]] {
    to_post = finish_sent(n, may_send);
  }
  in_flight_ -= n;
  post(to_post);
  return n;
}

uint32_t Forwarder::turn(bool may_send) noexcept {
  uint32_t moved = 0;
  if (ready_ == 0) [[likely]] {
    moved = receive(may_send);
  }
  while (may_send && left_ != 0 && !again_.empty() && ready_ < burst_ && !pause_.pausing())
    [[unlikely]] {
      add_new(again_.back());
      again_.pop_back();
    }
  if (ready_ != 0) {
    send();
  }
  moved += reap(may_send);
  if (left_ == 0 && quiet()) [[unlikely]] {
    set_finished();
  }
  return moved;
}

int check(const RunSetup& setup, std::string* error) {
  const size_t ports = setup.ports.size();
  if (setup.options.topology == Topology::kPaired && ports % 2 != 0) {
    return fail(error,
                "--topology paired needs pairs of ports, and there are %zu; add a --vdev, or use "
                "--topology loop",
                ports);
  }
  return 0;
}

std::unique_ptr<Stream> make(const RunSetup& setup, TestPort& in) {
  const uint32_t next = (in.index + 1) % static_cast<uint32_t>(setup.ports.size());
  const Topology topology = setup.options.topology;
  const uint32_t out = topology == Topology::kLoop     ? in.index
                       : topology == Topology::kPaired ? in.index ^ 1u
                                                       : next;
  return std::make_unique<Forwarder>(setup, in, *setup.ports[out]);
}

}  // namespace

constinit const Mode kIoMode = {.name = "io",
                                .takes_offset = false,
                                .latency_of = "one hop, queueing included",
                                .check = check,
                                .make_streams = make_each<make>};

}  // namespace rio::testpmd
