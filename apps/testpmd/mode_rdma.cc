// rdma: every port reads from or writes to memory of its peer: NREAD, NWRITE, NWRITE_R, SWRITE.
#include <cstring>

#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

using regs::DmaOp;

constexpr uint32_t kDepth = 32;                // requests in flight
constexpr uint64_t kWindowAt = 0x10000000;     // RapidIO address of every port's window
constexpr uint32_t kRegionSlack = 4096 + 256;  // room for the offset, and off the same cache set

/// Requests of one port. When verifying, what was written is read back and compared.
class RdmaStream final : public Stream {
 public:
  RdmaStream(const RunSetup& setup, TestPort& port)
      : Stream(setup, port),
        queue_(port.pair().dma()),
        op_(setup.options.op),
        stride_((setup.size_bytes + 4095) / 4096 * 4096 + kRegionSlack),
        bounced_((offset_bytes_ & (port.card().caps().dma_addr_align - 1)) != 0) {}

  ~RdmaStream() override {
    if (open_ && port_.pair().windows().close(window_) != 0) {
      target_.leave();
    }
  }

  [[nodiscard]] int open(std::string* error) override;
  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override { return free_count_ == kDepth; }

 private:
  struct Request {
    uint64_t number = 0;
    uint64_t start_tsc = 0;
    bool reading_back = false;
  };

  uint32_t post(uint32_t n) noexcept;
  [[nodiscard]] pmd::DmaRequest request(uint32_t slot, DmaOp op, const uint8_t* local) const {
    return {.rio_addr = kWindowAt + uint64_t{slot} * stride_,
            .iova = memory_.iova(static_cast<uint64_t>(local - memory_.va())),
            .cookie = slot,
            .dest_id = port_.peer_dest_id(),
            .length_bytes = size_bytes_,
            .op = op,
            .prio = 0};
  }
  void done(const pmd::EntryDone& entry) noexcept;
  void finish(uint32_t slot, bool right) noexcept;
  // Three regions for each request: the user's bytes, their bounced copy, what is read back.
  [[nodiscard]] uint8_t* user(uint32_t slot) const {
    return memory_.va(uint64_t{slot} * 3 * stride_ + offset_bytes_);
  }
  [[nodiscard]] uint8_t* bounce(uint32_t slot) const {
    return memory_.va((uint64_t{slot} * 3 + 1) * stride_);
  }
  [[nodiscard]] uint8_t* copy(uint32_t slot) const {
    return memory_.va((uint64_t{slot} * 3 + 2) * stride_);
  }
  [[nodiscard]] bool reads() const { return op_ == DmaOp::kNread; }

  pmd::DmaQueue& queue_;
  const DmaOp op_;
  const uint32_t stride_;
  const bool bounced_;
  CardMemory target_;  // behind the window that the peer works on
  uint32_t window_ = 0;
  bool open_ = false;
  CardMemory memory_;
  Request requests_[kDepth];
  pmd::DmaRequest read_back_[kDepth];
  uint32_t read_backs_ = 0;
  uint32_t free_[kDepth];
  uint32_t free_count_ = kDepth;
};

int RdmaStream::open(std::string* error) {
  pmd::Bus& bus = port_.card().bus();
  const uint64_t window_bytes = uint64_t{kDepth} * stride_;
  int rc = target_.allocate(bus, window_bytes);
  if (rc == 0) {
    rc = port_.pair().windows().open(
        {.rio_addr = kWindowAt,
         .size_bytes = window_bytes,
         .iova = target_.iova(),
         .rights = pmd::WindowRights::kRead | pmd::WindowRights::kWrite},
        &window_);
    open_ = rc == 0;
  }
  if (rc != 0) {
    return fail(error,
                "port %u cannot open a window of %lu bytes (%s); give a smaller --size or more "
                "memory",
                port_.index, window_bytes, std::strerror(-rc));
  }
  if (memory_.allocate(bus, 3 * window_bytes) != 0) {
    return fail(error, "no memory for %u requests of %u bytes; give EAL more (-m 512)", kDepth,
                size_bytes_);
  }
  for (uint32_t slot = 0; slot < kDepth; ++slot) {
    free_[slot] = slot;
    // Slot i, as the peer reads it, is message i of its flow.
    fill_message(target_.va(uint64_t{slot} * stride_), size_bytes_, verifier_.seed(),
                 {.sequence = slot});
  }
  return 0;
}

/// Post up to n new requests with one BAR write. @return how many.
uint32_t RdmaStream::post(uint32_t n) noexcept {
  n = std::min({n, free_count_, uint32_t{queue_.free_count()}});
  pmd::DmaRequest batch[kDepth];
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t slot = free_[free_count_ - 1 - i];
    Request& entry = requests_[slot];
    if (verifier_.verifies()) {
      entry.number = reads() ? verifier_.take_number(flow_) : verifier_.write(user(slot), flow_, 0);
    }
    if (bounced_ && !reads()) {
      std::memcpy(bounce(slot), user(slot), size_bytes_);
    }
    entry.start_tsc = rte_rdtsc();
    entry.reading_back = false;
    batch[i] = request(slot, op_, bounced_ ? bounce(slot) : user(slot));
  }
  const uint32_t posted = n == 0 ? 0 : queue_.post(batch, static_cast<uint16_t>(n));
  // The driver rejected the rest; each has a number.
  for (uint32_t i = posted; verifier_.verifies() && i < n; ++i) {
    verifier_.failed(flow_, pmd::Status::kBadDescriptor);
  }
  free_count_ -= posted;
  stats.tx_messages.add(posted);
  left_ -= left_ == UINT64_MAX ? 0 : posted;
  (bounced_ ? stats.bytes_copied : stats.bytes_placed).add(uint64_t{posted} * size_bytes_);
  return posted;
}

void RdmaStream::finish(uint32_t slot, bool right) noexcept {
  if (!right) {
    verifier_.note_error(flow_, "wrong byte", requests_[slot].number, 0);
  } else if (verifier_.verifies()) {
    verifier_.got_number(flow_, requests_[slot].number, size_bytes_);
  }
  stats.rx_messages.add(1);
  stats.rx_bytes.add(size_bytes_);
  free_[free_count_++] = slot;
}

void RdmaStream::done(const pmd::EntryDone& entry) noexcept {
  const auto slot = static_cast<uint32_t>(entry.cookie);
  Request& own = requests_[slot];
  stats.retries.add(entry.retries);
  if (entry.status != pmd::Status::kOk) [[unlikely]] {
    note_failure(entry.status);
    if (verifier_.verifies()) {
      verifier_.failed(flow_, pmd::Status::kResponseTimeout);  // it may have been carried out
    }
    free_[free_count_++] = slot;
    return;
  }
  if (!own.reading_back) {
    latency.add(rte_rdtsc() - own.start_tsc);
  }
  if (reads() && bounced_) {
    std::memcpy(user(slot), bounce(slot), size_bytes_);
  }
  if (!verifier_.verifies()) {
    finish(slot, true);
  } else if (reads()) {
    Tag tag;
    uint32_t offset = 0;
    finish(slot, check_message(user(slot), size_bytes_, size_bytes_, verifier_.seed(), slot, &tag,
                               &offset) == Verdict::kGood &&
                     tag.sequence == slot);
  } else if (!own.reading_back) {
    // Requests of one flow stay in order, so the read sees what was written before it.
    own.reading_back = true;
    std::memset(copy(slot), 0, size_bytes_);
    read_back_[read_backs_++] = request(slot, DmaOp::kNread, copy(slot));
  } else {
    finish(slot, std::memcmp(copy(slot), user(slot), size_bytes_) == 0);
  }
}

uint32_t RdmaStream::turn(bool may_send) noexcept {
  pmd::EntryDone entries[kDepth];
  const uint32_t n = queue_.reap(entries, kDepth);
  for (uint32_t i = 0; i < n; ++i) {
    done(entries[i]);
  }
  if (read_backs_ != 0) {
    const uint32_t posted = queue_.post(read_back_, static_cast<uint16_t>(read_backs_));
    read_backs_ -= posted;
    std::copy_n(read_back_ + posted, read_backs_, read_back_);
  }
  if (left_ == 0 && quiet()) [[unlikely]] {
    set_finished();
  }
  return n + (may_send && !pause_.pausing()
                  ? post(static_cast<uint32_t>(std::min<uint64_t>(kDepth, left_)))
                  : 0);
}

int check(const RunSetup& setup, std::string* error) {
  for (const auto& port : setup.ports) {
    const pmd::Caps& caps = port->card().caps();
    if (!caps.dma) {
      return fail(error, "port %u's card has no DMA queue: rdma does not run on it", port->index);
    }
    if (setup.size_bytes > caps.dma_bytes) {
      return fail(error, "--size %u is more than the %u bytes of one request of port %u's card",
                  setup.size_bytes, caps.dma_bytes, port->index);
    }
    if (port->peer() == nullptr && setup.options.verify) {
      return fail(error, "rdma --verify wants both ends in this process, and port %u's peer is not",
                  port->index);
    }
  }
  if (setup.options.op == DmaOp::kSwrite && setup.size_bytes % 8 != 0) {
    return fail(error,
                "SWRITE moves doublewords: --size %u is no multiple of 8; take another size, or "
                "--op nwrite",
                setup.size_bytes);
  }
  return 0;
}

}  // namespace

constinit const Mode kRdmaMode = {.name = "rdma",
                                  .max_bytes = kTransferBytesMax,
                                  .latency_of = "request to completion",
                                  .check = check,
                                  .make_streams = make_each<make_stream<RdmaStream>>};

}  // namespace rio::testpmd
