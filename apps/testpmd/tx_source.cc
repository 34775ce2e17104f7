#include "apps/testpmd/tx_source.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <cstring>

#include "pmd/mem/alignment_plan.hpp"

namespace rio::testpmd {
namespace {

// A buffer: room for the payload at its offset, then room for a bounced copy. The distance keeps
// the heads of buffers out of one cache set.
constexpr uint32_t kBounceAt = 8192;
constexpr uint32_t kStride = kBounceAt + 4096 + 256;
constexpr uint32_t kBuffers = 512;

}  // namespace

uint32_t mailboxes_for(const Options& options, uint32_t size_bytes) {
  const uint32_t all =
      size_bytes <= regs::kSegmentBytesMax ? regs::kMailboxes : regs::kMultiMailboxes;
  return options.mailboxes == 0 ? all : std::min(options.mailboxes, all);
}

TxSource::TxSource(const RunSetup& setup, TestPort& port, std::vector<Way> ways, Stream& owner)
    : queue_(port.pair().tx()),
      probe_(port.peer() == nullptr ? nullptr : &port.peer()->probe),
      bus_(port.card().bus()),
      verifier_(setup.verifier),
      owner_(owner),
      ways_(std::move(ways)),
      size_bytes_(setup.size_bytes),
      offset_bytes_(setup.options.offset_bytes),
      tx_addr_align_(port.card().caps().tx_addr_align),
      burst_(setup.options.burst),
      left_(setup.options.count == 0 ? UINT64_MAX : setup.options.count) {}

int TxSource::allocate(std::string* error) {
  const int rc = bus_.dma_alloc(uint64_t{kBuffers} * kStride, 4096, &memory_);
  if (rc != 0) {
    *error = "no memory for " + std::to_string(kBuffers) +
             " buffers to send from; reserve more "
             "hugepages or give EAL more memory (-m 512)";
    return rc;
  }
  va_minus_iova_ = reinterpret_cast<uint64_t>(memory_.va) - memory_.iova;
  for (uint32_t i = kBuffers; i-- > 0;) {
    free_.push_back(memory_.iova + uint64_t{i} * kStride);
  }
  free_top_ = kBuffers;
  // One answer holds for all buffers, since their distance is a multiple of the cards' alignments.
  const pmd::IovaRun run{memory_.va, memory_.iova, memory_.len_bytes};
  const pmd::mem::Range range{.va = static_cast<uint8_t*>(memory_.va) + offset_bytes_,
                              .len_bytes = size_bytes_,
                              .runs = {&run, 1}};
  pmd::mem::AlignRules rules;
  rules.tx_addr = tx_addr_align_;
  pmd::mem::Plan plan;
  const int planned = pmd::mem::plan_transmit(range, rules, {}, &plan);
  if (planned != 0) {
    *error = "no alignment plan for " + std::to_string(size_bytes_) + " bytes at offset " +
             std::to_string(offset_bytes_);
    return planned;
  }
  bounced_ = plan.messages.front().placement == pmd::mem::Placement::kBounced;
  slots_.resize(ways_.size() + burst_);
  flows_.resize(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Way& way = ways_[i % ways_.size()];
    const uint64_t buffer = free_[i % kBuffers];
    flows_[i] = way.flow;
    slots_[i] = {.iova = buffer + (bounced_ ? kBounceAt : offset_bytes_),
                 .cookie = buffer,
                 .dest_id = way.dest_id,
                 .length_bytes = static_cast<uint16_t>(size_bytes_),
                 .mbox = way.mbox,
                 .flags = 0};
  }
  return 0;
}

int TxSource::create(const RunSetup& setup, TestPort& port, std::vector<Way> ways, Stream& owner,
                     std::unique_ptr<TxSource>* out, std::string* error) {
  std::unique_ptr<TxSource> source(new TxSource(setup, port, std::move(ways), owner));
  const int rc = source->allocate(error);
  if (rc == 0) {
    *out = std::move(source);
  }
  return rc;
}

TxSource::~TxSource() {
  if (memory_.va != nullptr) {
    bus_.dma_free(memory_);
  }
}

/// Write messages into slots way_ + ready_ … way_ + n. @return how many are ready.
uint32_t TxSource::prepare(uint32_t n) noexcept {
  const uint64_t now = rte_rdtsc();
  while (ready_ < n && free_top_ > 0) {
    const uint32_t at = way_ + ready_;
    const uint64_t buffer = free_[--free_top_];
    auto* bytes = reinterpret_cast<uint8_t*>(buffer + va_minus_iova_);
    verifier_.write(bytes + offset_bytes_, flows_[at], now);
    if (bounced_) {
      std::memcpy(bytes + kBounceAt, bytes + offset_bytes_, size_bytes_);
    }
    slots_[at].iova = buffer + (bounced_ ? kBounceAt : offset_bytes_);
    slots_[at].cookie = buffer;
    ++ready_;
  }
  return ready_;
}

uint32_t TxSource::turn(bool may_send) noexcept {
  if (pause_.pausing()) [[unlikely]] {
    return 0;
  }
  // Messages that have a number go out even when the run drains.
  auto n = may_send ? static_cast<uint32_t>(std::min<uint64_t>(burst_, left_)) : ready_;
  if (verifier_.verifies()) {
    n = std::min(prepare(n), n);
  } else if (bounced_) {
    for (uint32_t i = 0; i < n; ++i) {
      auto* bytes = reinterpret_cast<uint8_t*>(slots_[way_ + i].cookie + va_minus_iova_);
      std::memcpy(bytes + kBounceAt, bytes + offset_bytes_, size_bytes_);
    }
  }
  if (n == 0) {
    return 0;
  }
  const uint64_t tsc = probe_ != nullptr && probe_->idle() ? rte_rdtsc() : 0;
  const uint32_t sent = queue_.burst(&slots_[way_], static_cast<uint16_t>(n));
  if (sent == 0) {
    return 0;
  }
  if (probe_ != nullptr) {
    probe_->sent(sent, tsc);
  }
  advance(sent);
  left_ -= left_ == UINT64_MAX ? 0 : sent;
  in_flight_ += sent;
  owner_.stats.tx_messages.add(sent);
  const uint64_t bytes = uint64_t{sent} * size_bytes_;
  (bounced_ ? owner_.stats.bytes_copied : owner_.stats.bytes_placed).add(bytes);
  return sent;
}

/// The next slot, always below ways_.size(); what is ready beyond it moves along.
void TxSource::advance(uint32_t sent) noexcept {
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

void TxSource::failed(const pmd::TxDone& done) noexcept {
  owner_.stats.count_status(done.status);
  pause_.note(done.status);
  if (probe_ != nullptr) {
    probe_->give_up();
  }
  if (verifier_.verifies()) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(done.cookie + va_minus_iova_);
    Tag tag{.flow = ways_.front().flow};
    if (size_bytes_ >= kTagBytes) {
      (void)read_tag(bytes + offset_bytes_, size_bytes_, 0, &tag);
    }
    verifier_.failed(tag.flow, done.status);
  }
}

uint32_t TxSource::reap() noexcept {
  const uint32_t n = queue_.reap(done_, static_cast<uint16_t>(kBurstMax));
  uint32_t retries = 0;
  for (uint32_t i = 0; i < n; ++i) {
    retries += done_[i].retries;
    if (done_[i].status != pmd::Status::kOk) [[unlikely]] {
      failed(done_[i]);
    }
  }
  if (n == 0) {
    return 0;
  }
  if (verifier_.verifies()) {
    for (uint32_t i = 0; i < n; ++i) {
      free_[free_top_++] = done_[i].cookie;
    }
  }
  in_flight_ -= n;
  owner_.stats.tx_done.add(n);
  owner_.stats.retries.add(retries);
  return n;
}

}  // namespace rio::testpmd
