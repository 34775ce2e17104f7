#include "tests/bench/count_case.hpp"

namespace rio::bench {
namespace {

constexpr uint16_t kBurstMax = 128;
constexpr uint32_t kStepsMax = 10000;  // steps to carry out a burst; far more than needed

void expect(bool good, const char* what) {
  if (!good) [[unlikely]] {
    give_up(what, 0);
  }
}

// The driver's calls. They are not inlined, so that what is inlined into them counts as the
// driver's; scripts/lib/bench/callgrind.py knows them by their names.
template <class Queue, class Entry>
[[gnu::noinline]] uint16_t driver_burst(Queue& queue, Entry* entries, uint16_t n) {
  return queue.burst(entries, n);
}
template <class Queue, class Entry>
[[gnu::noinline]] uint16_t driver_post(Queue& queue, const Entry* entries, uint16_t n) {
  return queue.post(entries, n);
}
template <class Queue, class Done>
[[gnu::noinline]] uint16_t driver_reap(Queue& queue, Done* done, uint16_t n) {
  return queue.reap(done, n);
}

// Single entries, as a program gives them to the driver: their number is a constant, and what
// becomes of them is looked at where the call is.
template <class Queue, class Entry>
[[gnu::noinline]] void driver_burst_one(Queue& queue, Entry* entry) {
  expect(queue.burst(entry, 1) == 1, "a burst of one");
}
template <class Queue, class Entry>
[[gnu::noinline]] void driver_post_one(Queue& queue, const Entry* entry) {
  expect(queue.post(entry, 1) == 1, "giving a buffer back");
}
template <class Queue, class Done>
[[gnu::noinline]] void driver_reap_one(Queue& queue, Done* done) {
  expect(queue.reap(done, 1) == 1, "delivering a message");
}

template <class Watch>
class Base : public CountCase {
 public:
  Base(uint32_t size_bytes, uint16_t burst, bool barriers = false)
      : cards_({}, barriers), size_bytes_(size_bytes), burst_(burst) {}
  [[nodiscard]] uint64_t messages() const override { return messages_; }
  [[nodiscard]] uint64_t bar_reads_max() const override { return watch_.reads_max; }
  [[nodiscard]] uint64_t bar_writes_max() const override { return watch_.writes_max; }
  [[nodiscard]] uint64_t bar_reads() const override { return watch_.reads; }
  [[nodiscard]] uint64_t bar_writes() const override { return watch_.writes; }

 protected:
  // The driver's calls, each watched.
  uint16_t burst(pmd::TxQueue& queue, const pmd::TxMessage* messages, uint16_t n) {
    return watch_(queue, [=](auto& q) { return driver_burst(q, messages, n); });
  }
  template <class Queue, class Entry>
  uint16_t post(Queue& queue, const Entry* entries, uint16_t n) {
    return watch_(queue, [=](auto& q) { return driver_post(q, entries, n); });
  }
  template <class Queue, class Done>
  uint16_t reap(Queue& queue, Done* done, uint16_t n) {
    return watch_(queue, [=](auto& q) { return driver_reap(q, done, n); });
  }
  template <class Queue, class Out>
  uint16_t take(Queue& queue, Out* out, uint16_t n) {
    return watch_(queue, [=](auto& q) { return driver_burst(q, out, n); });
  }

  /// Receives the messages that are at `port`, and gives the buffers back.
  uint16_t sink(Port& port) {
    pmd::RxMessage messages[kBurstMax];
    pmd::RxBuffer buffers[kBurstMax];
    const uint16_t n = take(port.shared(), messages, burst_);
    for (uint32_t i = 0; i < n; ++i) {
      buffers[i] = {.iova = messages[i].cookie, .cookie = messages[i].cookie};
    }
    expect(post(port.shared(), buffers, n) == n, "giving buffers back");
    return n;
  }

  /// Lets the cards work, and reaps at `port` until all messages of a burst are delivered.
  void finish(Port& port, uint32_t n) {
    pmd::TxDone done[kBurstMax];
    for (uint32_t steps = 0; n != 0 && steps < kStepsMax; ++steps) {
      n -= reap(port.tx(), done, static_cast<uint16_t>(n));
      cards_.step();
    }
    expect(n == 0, "delivering a burst");
  }

  EmulatedPair cards_;
  Watch watch_;
  uint32_t size_bytes_;
  uint16_t burst_;
  uint64_t messages_ = 0;
};

/// A card sends each received message back, zero-copy, as rio-testpmd's io mode does.
template <class Watch>
class Forward final : public Base<Watch> {
 public:
  Forward(uint32_t size_bytes, uint16_t burst) : Base<Watch>(size_bytes, burst) {
    for (size_t i = 0; i < 2; ++i) {
      prime(this->cards_.port(i));
    }
  }
  void round() override {
    turn(this->cards_.port(0));
    turn(this->cards_.port(1));
  }

 private:
  void prime(Port& port) {
    pmd::TxMessage messages[kBurstMax];
    uint32_t indices[kBurstMax];
    const uint16_t window = std::max<uint16_t>(64, this->burst_);  // as rio-testpmd
    expect(port.pool->get(indices, window) == window, "taking buffers");
    for (uint32_t i = 0; i < window; ++i) {
      const uint64_t iova = port.pool->iova(indices[i]);
      messages[i] = port.message(iova, iova, this->size_bytes_);
    }
    expect(port.tx().burst(messages, window) == window, "sending the first messages");
  }
  void turn(Port& port) {
    pmd::RxMessage received[kBurstMax];
    pmd::TxMessage messages[kBurstMax];
    pmd::TxDone done[kBurstMax];
    pmd::RxBuffer buffers[kBurstMax];
    const uint16_t n = this->take(port.shared(), received, this->burst_);
    for (uint32_t i = 0; i < n; ++i) {
      messages[i] = port.message(received[i].cookie, received[i].cookie, this->size_bytes_);
    }
    expect(this->burst(port.tx(), messages, n) == n, "forwarding a burst");
    const uint16_t sent = this->reap(port.tx(), done, this->burst_);
    uint32_t bad = 0;
    for (uint32_t i = 0; i < sent; ++i) {
      buffers[i] = {.iova = done[i].cookie, .cookie = done[i].cookie};
      bad |= static_cast<uint32_t>(done[i].status);
    }
    expect(bad == 0 && this->post(port.shared(), buffers, sent) == sent, "giving buffers back");
    this->messages_ += n;
  }
};

/// Messages that are sent and received one at a time: posted, reaped, taken and given back alone.
template <class Watch, bool kInline>
class One final : public Base<Watch> {
 public:
  One(uint32_t size_bytes, uint16_t /*burst*/) : Base<Watch>(size_bytes, 1) {}
  void round() override {
    Port& from = this->cards_.port(0);
    const uint32_t length_bytes =
        kInline ? std::min(this->size_bytes_, from.card->caps().inline_bytes) : this->size_bytes_;
    pmd::TxMessage message = from.message(from.pool->iova(0), this->messages_, length_bytes);
    if constexpr (kInline) {
      message.data = bytes_;
      message.flags = pmd::TxFlags::kInline;
    }
    this->watch_(from.tx(), [&](auto& q) { return driver_burst_one(q, &message), 1; });
    // The other steps are not the queues'.
    this->cards_.step();
    this->cards_.step();
    pmd::TxDone done;
    this->watch_(from.tx(), [&](auto& q) { return driver_reap_one(q, &done), 1; });
    expect(done.status == pmd::Status::kOk && done.cookie == this->messages_,
           "delivering a message");
    pmd::SharedRxQueue& shared = this->cards_.port(1).shared();
    pmd::RxMessage received;
    this->watch_(shared, [&](auto& q) { return driver_burst_one(q, &received), 1; });
    expect(received.status == pmd::Status::kOk, "receiving a message");
    const pmd::RxBuffer buffer = {.iova = received.cookie, .cookie = received.cookie};
    this->watch_(shared, [&](auto& q) { return driver_post_one(q, &buffer), 1; });
    ++this->messages_;
  }

 private:
  uint8_t bytes_[64] = {1, 2, 3, 4, 5, 6, 7, 8};
};

/// Messages whose bytes are in the descriptor.
template <class Watch>
class SendInline final : public Base<Watch> {
 public:
  using Base<Watch>::Base;
  void round() override {
    Port& from = this->cards_.port(0);
    const uint32_t length_bytes = std::min(this->size_bytes_, from.card->caps().inline_bytes);
    pmd::TxMessage messages[kBurstMax];
    for (uint32_t i = 0; i < this->burst_; ++i) {
      messages[i] = from.message(0, i, length_bytes);
      messages[i].data = bytes_;
      messages[i].flags = pmd::TxFlags::kInline;
    }
    expect(this->burst(from.tx(), messages, this->burst_) == this->burst_, "sending a burst");
    for (uint32_t steps = 0; from.tx().outstanding() != 0 && steps < kStepsMax; ++steps) {
      this->cards_.step();
      pmd::TxDone done[kBurstMax];
      (void)this->reap(from.tx(), done, this->burst_);
    }
    uint32_t got = 0;
    for (uint32_t steps = 0; got < this->burst_ && steps < kStepsMax; ++steps) {
      got += this->sink(this->cards_.port(1));
    }
    expect(got == this->burst_, "receiving a burst");
    this->messages_ += got;
  }

 private:
  uint8_t bytes_[64] = {1, 2, 3, 4, 5, 6, 7, 8};
};

/// Four dedicated queues, one for each mailbox, with a burst into each. A message is as long as its
/// entry: the sender pads shorter ones to the card's alignment, as pmd/mem plans it.
template <class Watch>
class Dedicated final : public Base<Watch> {
 public:
  Dedicated(uint32_t size_bytes, uint16_t burst) : Base<Watch>(size_bytes, burst) {
    Port& to = this->cards_.port(1);
    const uint32_t align = to.card->caps().dedicated_size_align;
    entry_bytes_ = (size_bytes + align - 1) / align * align;
    for (uint32_t i = 0; i < kQueues; ++i) {
      expect(to.pair->open_dedicated(i, this->cards_.port(0).dest_id, i, &queues_[i]) == 0,
             "opening a dedicated queue");
    }
    expect(to.bus->dma_alloc(kQueues * burst * kStride, kStride, &landing_) == 0, "memory");
    expect(to.bus->dma_alloc(kStride, kStride, &source_) == 0, "memory");
  }
  void round() override {
    for (uint32_t queue = 0; queue < kQueues; ++queue) {
      pmd::DedicatedEntry entries[kBurstMax];
      for (uint32_t i = 0; i < this->burst_; ++i) {
        entries[i] = {.iova = landing_.iova + (queue * this->burst_ + i) * kStride,
                      .cookie = i,
                      .size_bytes = entry_bytes_};
      }
      expect(this->post(*queues_[queue], entries, this->burst_) == this->burst_, "posting");
    }
    for (uint32_t queue = 0; queue < kQueues; ++queue) {
      send();
    }
    for (pmd::DedicatedRxQueue* queue : queues_) {
      pmd::EntryDone done[kBurstMax];
      expect(this->reap(*queue, done, this->burst_) == this->burst_, "completing");
      this->messages_ += this->burst_;
    }
  }

 private:
  static constexpr uint32_t kQueues = regs::kMultiMailboxes;
  static constexpr uint32_t kStride = regs::kMessageBytesMax;

  void send() {
    Port& from = this->cards_.port(0);
    pmd::TxMessage messages[kBurstMax];
    for (uint32_t i = 0; i < this->burst_; ++i) {
      // Not by designated initialisers: clang 14 loses those of a union in a template.
      pmd::TxMessage& message = messages[i];
      message.iova = source_.iova;
      message.cookie = i;
      message.dest_id = from.peer_id;
      message.length_bytes = static_cast<uint16_t>(entry_bytes_);
      message.mbox = static_cast<uint8_t>(i % kQueues);
      message.flags = 0;
    }
    expect(this->burst(from.tx(), messages, this->burst_) == this->burst_, "sending a burst");
    this->finish(from, this->burst_);
  }

  pmd::DedicatedRxQueue* queues_[kQueues] = {};
  pmd::DmaMemory landing_;
  pmd::DmaMemory source_;
  uint32_t entry_bytes_ = 0;
};

template <class Watch>
class Doorbell final : public Base<Watch> {
 public:
  using Base<Watch>::Base;
  void round() override {
    Port& from = this->cards_.port(0);
    pmd::TxMessage messages[kBurstMax];
    for (uint32_t i = 0; i < this->burst_; ++i) {
      messages[i] = from.message(0, i, 0);
      messages[i].info = i;
      messages[i].flags = pmd::TxFlags::kDoorbell;
    }
    expect(this->burst(from.tx(), messages, this->burst_) == this->burst_, "sending a burst");
    this->finish(from, this->burst_);
    pmd::DoorbellEvent events[kBurstMax];
    expect(this->take(this->cards_.port(1).pair->doorbells(), events, this->burst_) == this->burst_,
           "receiving doorbells");
    this->messages_ += this->burst_;
  }
};

/// NWRITE_R into a window of the peer.
template <class Watch>
class Dma final : public Base<Watch> {
 public:
  Dma(uint32_t size_bytes, uint16_t burst) : Base<Watch>(size_bytes, burst) {
    Port& to = this->cards_.port(1);
    expect(to.bus->dma_alloc(kBytes, kBytes, &memory_) == 0, "memory");
    uint32_t index = 0;
    expect(to.pair->windows().open({.rio_addr = 0,
                                    .size_bytes = kBytes,
                                    .iova = memory_.iova,
                                    .rights = pmd::WindowRights::kWrite},
                                   &index) == 0,
           "opening a window");
  }
  void round() override {
    Port& from = this->cards_.port(0);
    pmd::DmaRequest requests[kBurstMax];
    for (uint32_t i = 0; i < this->burst_; ++i) {
      requests[i] = {.rio_addr = 0,
                     .iova = from.pool->memory().iova,
                     .cookie = i,
                     .dest_id = from.peer_id,
                     .length_bytes = this->size_bytes_,
                     .op = regs::DmaOp::kNwriteR,
                     .prio = 0};
    }
    pmd::DmaQueue& queue = from.pair->dma();
    expect(this->post(queue, requests, this->burst_) == this->burst_, "posting requests");
    for (uint32_t i = 0; i < kSteps; ++i) {
      this->cards_.step();
    }
    pmd::EntryDone done[kBurstMax];
    expect(this->reap(queue, done, this->burst_) == this->burst_, "completing requests");
    this->messages_ += this->burst_;
  }

 private:
  static constexpr uint32_t kBytes = 65536;
  static constexpr uint32_t kSteps = 16;
  pmd::DmaMemory memory_;
};

/// A barrier of the two cards: each starts it, and takes its end. No poll finds nothing.
template <class Watch, bool kSlots>
class Barrier final : public Base<Watch> {
 public:
  Barrier(uint32_t size_bytes, uint16_t burst) : Base<Watch>(size_bytes, burst, true) {
    using Control = regs::barrier_desc::Control;
    for (uint32_t i = 0; i < 2; ++i) {
      regs::BarrierDesc& desc = descs_[i];
      desc.control = Control::rounds.put(1);
      std::fill(std::begin(desc.peers), std::end(desc.peers), ~0u);
      desc.peers[0] = this->cards_.port(i).peer_id;
      desc.send = desc.await = 1;
      expect(queue(i).load(0, desc, 0) == 0, "loading a slot");
    }
  }
  void round() override {
    ++epoch_;
    for (uint32_t i = 0; i < 2; ++i) {
      start(i);
    }
    for (uint32_t i = 0; i < kSteps; ++i) {
      this->cards_.step();
    }
    for (uint32_t i = 0; i < 2; ++i) {
      pmd::BarrierDone done;
      expect(this->reap(queue(i), &done, 1) == 1 && done.status == pmd::Status::kOk &&
                 done.epoch == epoch_,
             "ending a barrier");
    }
    this->messages_ += 2;
  }

 private:
  static constexpr uint32_t kSteps = 16;

  pmd::BarrierQueue& queue(uint32_t i) { return this->cards_.port(i).pair->barriers(); }
  void start(uint32_t i) {
    if constexpr (kSlots) {
      expect(this->watch_(queue(i), [this](auto& q) { return q.go(0, epoch_); }),
             "starting a slot");
    } else {
      const pmd::BarrierRequest request{&descs_[i], 0, epoch_};
      expect(this->post(queue(i), &request, 1) == 1, "posting a barrier");
    }
  }

  regs::BarrierDesc descs_[2]{};
  uint32_t epoch_ = 0;
};

template <class Watch>
std::unique_ptr<CountCase> make(std::string_view name, uint32_t size_bytes, uint16_t burst) {
  if (name == "forward") {
    return std::make_unique<Forward<Watch>>(size_bytes, burst);
  }
  if (name == "send_inline") {
    return std::make_unique<SendInline<Watch>>(size_bytes, burst);
  }
  if (name == "one") {
    return std::make_unique<One<Watch, false>>(size_bytes, burst);
  }
  if (name == "one_inline") {
    return std::make_unique<One<Watch, true>>(size_bytes, burst);
  }
  if (name == "dedicated") {
    return std::make_unique<Dedicated<Watch>>(size_bytes, burst);
  }
  if (name == "doorbell") {
    return std::make_unique<Doorbell<Watch>>(size_bytes, burst);
  }
  if (name == "dma") {
    return std::make_unique<Dma<Watch>>(size_bytes, burst);
  }
  if (name == "barrier") {
    return std::make_unique<Barrier<Watch, true>>(size_bytes, burst);
  }
  if (name == "barrier_ring") {
    return std::make_unique<Barrier<Watch, false>>(size_bytes, burst);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<CountCase> make_case(std::string_view name, bool watch, uint32_t size_bytes,
                                     uint16_t burst) {
  expect(burst >= 1 && burst <= kBurstMax, "the burst, which is 1 to 128");
  return watch ? make<BarWatch>(name, size_bytes, burst) : make<NoWatch>(name, size_bytes, burst);
}

}  // namespace rio::bench
