#include "pmd/dma/device.hpp"

#include <rte_random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/log.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {

using regs::DmaOp;

DmaDevice::DmaDevice(std::string name, std::shared_ptr<EalCard> card)
    : CardUser(std::move(name), std::move(card)),
      key_(static_cast<uint16_t>(1 + rte_rand_max(UINT16_MAX))) {}

DmaDevice::~DmaDevice() {
  stop();
}

int DmaDevice::create(const std::string& name, std::shared_ptr<EalCard> card, int qp,
                      std::unique_ptr<DmaDevice>* out) {
  std::unique_ptr<DmaDevice> device(new DmaDevice(name, std::move(card)));
  EalCard& at = *device->card_;
  if (at.card() == nullptr) {
    return -ENODEV;
  }
  if (!at.card()->caps().dma) {
    base::log_error("%s: the card %s has no DMA queues: take another card", name.c_str(),
                    at.name().c_str());
    return -ENOTSUP;
  }
  int rc = at.claim_one(qp, *device, &device->qp_);
  rc = rc != 0 ? rc : device->find_out();
  if (rc == 0) {
    *out = std::move(device);
  }
  return rc;
}

int DmaDevice::open() {
  if (const int rc = card_->require_card(name_); rc != 0) {
    return rc;
  }
  QueuePairConfig config;
  config.dma_log2 = card_->args().queues.dma_log2;
  config.rings = ring_bit(regs::Ring::kDma);
  return card_->card()->open_queue_pair(qp_, config, &pair_);
}

/// Opens a window for this queue pair only: memory-to-memory copies write through it.
int DmaDevice::open_to_self(uint64_t iova, uint64_t size_bytes) {
  uint32_t index = 0;
  return pair_->windows().open({.rio_addr = iova,
                                .size_bytes = size_bytes,
                                .iova = iova,
                                .rights = WindowRights::kWrite,
                                .source = dest_id(),
                                .source_mask = UINT32_MAX,
                                .key = key_},
                               &index);
}

/// Finds out whether the card hears what it sends to its own destID: that depends on the fabric.
/// Copies from memory to memory then need a window onto all memory that the card reaches, which
/// without an IOMMU is all of the machine: never opened.
int DmaDevice::find_out() {
  DmaMemory memory;
  int rc = card_->bus().dma_alloc(4096, 4096, &memory);
  if (rc != 0) {
    return rc;
  }
  rc = open();
  if (rc == 0 && pair_->has_windows() && !card_->bus().reaches_all_memory()) {
    rc = open_to_self(memory.iova, memory.len_bytes);
    hears_itself_ = rc == 0 && reaches_itself(memory);
  }
  pair_.reset();
  card_->bus().dma_free(memory);
  return rc;
}

bool DmaDevice::reaches_itself(const DmaMemory& memory) {
  constexpr uint64_t kMark = 0x52494F20746F2069;
  auto* const words = static_cast<volatile uint64_t*>(memory.va);
  constexpr uint32_t kTargetAt = 256;
  words[0] = kMark;
  const uint64_t target = (uint64_t{key_} << 48) | (memory.iova + kTargetAt);
  const DmaRequest request = {.rio_addr = target,
                              .iova = memory.iova,
                              .cookie = 0,
                              .dest_id = dest_id(),
                              .length_bytes = sizeof(kMark),
                              .op = DmaOp::kNwriteR,
                              .prio = 0};
  if (pair_->dma().post(&request, 1) != 1) {
    return false;
  }
  // The card gives up by itself after this time.
  Waiter waiter(card_->bus().poll_hook(qp_), 1 + card_->args().card.response_timeout_us / 250);
  EntryDone done{};
  while (pair_->dma().reap(&done, 1) == 0) {
    if (!waiter.pause()) {
      return false;
    }
  }
  return done.status == Status::kOk && words[kTargetAt / sizeof(kMark)] == kMark;
}

int DmaDevice::configure(uint16_t channels) {
  channels_.clear();
  channels_.resize(channels);
  return 0;
}

int DmaDevice::node_of(const rte_dma_port_param& port, DmaWay* way) {
  if (port.reserved[0] >> 32 != RTE_DMA_RIO_PORT_MARK) {
    way->dest_id = static_cast<uint32_t>(port.pcie.vfid);
    return 0;
  }
  constexpr uint8_t kPrioMax = 2;
  way->dest_id = static_cast<uint32_t>(port.reserved[0]);
  way->prio = static_cast<uint8_t>(port.reserved[1] >> 8);
  static constexpr std::array kWrites = {DmaOp::kNwriteR, DmaOp::kNwrite, DmaOp::kSwrite};
  static_assert(RTE_DMA_RIO_NWRITE_R == 0 && RTE_DMA_RIO_NWRITE == 1 && RTE_DMA_RIO_SWRITE == 2);
  const auto write = static_cast<uint8_t>(port.reserved[1]);
  if (write >= kWrites.size()) {
    base::log_error("%s: a channel wants a kind of write that rte_dma_rio.h does not define",
                    name_.c_str());
    return -EINVAL;
  }
  way->op = kWrites[write];
  if (way->prio > kPrioMax || port.reserved[1] >> 16 != 0) {
    base::log_error("%s: a channel wants priority %u; allowed are 0 to %u", name_.c_str(),
                    way->prio, kPrioMax);
    return -EINVAL;
  }
  return 0;
}

int DmaDevice::way_of(const rte_dma_vchan_conf& conf, DmaWay* way) {
  switch (conf.direction) {
    case RTE_DMA_DIR_MEM_TO_MEM:
      *way = {.op = DmaOp::kNwriteR,
              .dest_id = dest_id(),
              .rio_base = uint64_t{key_} << 48,
              .to_self = true};
      return 0;
    case RTE_DMA_DIR_MEM_TO_DEV:
      return node_of(conf.dst_port, way);
    case RTE_DMA_DIR_DEV_TO_MEM: {
      const int rc = node_of(conf.src_port, way);
      way->op = DmaOp::kNread;
      return rc;
    }
    default:
      return -EINVAL;  // not a capability of the device; dmadev does not check
  }
}

int DmaDevice::setup(uint16_t number, const rte_dma_vchan_conf& conf) {
  DmaWay way;
  int rc = card_->require_card(name_);
  rc = rc != 0 ? rc : way_of(conf, &way);
  if (rc != 0) {
    return rc;
  }
  const uint32_t slots = std::bit_ceil<uint32_t>(conf.nb_desc);
  channels_[number] = std::make_unique<DmaChannel>(number, way, slots, card_->card()->caps());
  return 0;
}

int DmaDevice::start() {
  if (std::find(channels_.begin(), channels_.end(), nullptr) != channels_.end()) {
    base::log_error("%s: set up all %u channels before the start", name_.c_str(), channels());
    return -EINVAL;
  }
  const int rc = reopen();
  started_ = rc == 0;
  return rc;
}

/// Opens the queue pair again, with all that depends on the card's destID.
int DmaDevice::reopen() {
  bool to_self = false;
  for (const auto& channel : channels_) {
    if (channel->way().to_self) {
      channel->set_dest_id(dest_id());
      to_self = true;
    }
  }
  empty_looks_ = 0;
  const int rc = open();
  return rc == 0 && to_self ? open_to_self(0, uint64_t{1} << 48) : rc;
}

void DmaDevice::stop() {
  close(Status::kFlushed);
  windows_.fill({});
  started_ = false;
}

/// Closes the queue pair. @param status of the operations under way.
void DmaDevice::close(Status status) {
  if (pair_ != nullptr && pair_->stop() == 0) {
    while (reap(status) != 0) {
    }
  }
  pair_.reset();
  for (const auto& channel : channels_) {
    if (channel != nullptr) {
      channel->fail(status);
    }
  }
}

int DmaDevice::hold() {
  constexpr uint32_t kTimeoutMs =
      2000;  // a burst that finds its card gone closes the queue by itself
  if (turn_.take_for_good(kTimeoutMs)) {
    return 0;
  }
  base::log_error("%s: cannot reset the card: a thread has not come out of this device for %u ms",
                  name_.c_str(), kTimeoutMs);
  return -EBUSY;
}

void DmaDevice::before_reset() {
  close(Status::kLinkDown);
}

int DmaDevice::after_reset() {
  if (!started_) {
    return 0;
  }
  int rc = reopen();
  for (uint32_t i = 0; i < windows_.size() && rc == 0; ++i) {  // the user's, by the same indices
    rc = windows_[i] ? pair_->windows().open_at(i, *windows_[i]) : 0;
  }
  if (rc != 0) {
    pair_.reset();
    base::log_error(
        "%s: not open again after a reset of the card: stop the device and start it again",
        name_.c_str());
  }
  return rc;
}

int DmaDevice::open_window(const rte_dma_rio_window& window, uint32_t* index) {
  if (pair_ == nullptr || !pair_->has_windows()) {
    return -ENODEV;
  }
  const Window wanted = {.rio_addr = window.rio_addr,
                         .size_bytes = window.len,
                         .iova = window.iova,
                         .rights = window.rights,
                         .source = window.source,
                         .source_mask = window.source_mask,
                         .key = window.key};
  const int rc = pair_->windows().open(wanted, index);
  if (rc == 0) {
    windows_[*index] = wanted;
  }
  return rc;
}

int DmaDevice::close_window(uint32_t index) {
  if (pair_ == nullptr || !pair_->has_windows()) {
    return -ENODEV;
  }
  if (index >= windows_.size() || !windows_[index]) {
    base::log_error("%s: window %u is not open", name_.c_str(), index);
    return -ENOENT;
  }
  const int rc = pair_->windows().close(index);
  if (rc == 0 || rc == -ENODEV) {
    windows_[index].reset();
  }
  return rc;
}

uint32_t DmaDevice::dest_id() {
  return card_->dest_id(qp_);
}

/// Fetches completions. @param flushed status for requests that the card gave back when its ring
/// stopped.
uint16_t DmaDevice::reap(Status flushed) {
  constexpr uint16_t kBurst = 32;
  EntryDone done[kBurst];
  const uint16_t n = pair_->dma().reap(done, kBurst);
  for (uint16_t i = 0; i < n; ++i) {
    const Status status = done[i].status == Status::kFlushed ? flushed : done[i].status;
    channels_[done[i].cookie >> 32]->ended(static_cast<uint32_t>(done[i].cookie), status);
  }
  return n;
}

void DmaDevice::work(DmaChannel& channel) {
  channel.submit_late();
  if (pair_ == nullptr) [[unlikely]] {
    if (started_) {
      channel.fail(Status::kLinkDown);  // operations submitted to a lost device end, too
    }
    return;
  }
  constexpr uint32_t kLooks = 1u << 16;  // empty fetches before the card is checked
  DmaQueue& queue = pair_->dma();
  const uint16_t n = reap();
  empty_looks_ = n != 0 || queue.outstanding() == 0 ? 0 : empty_looks_ + 1;
  if (empty_looks_ == kLooks) [[unlikely]] {
    empty_looks_ = 0;
    look_for_trouble();
    if (pair_ == nullptr) {
      return;
    }
  }
  channel.post(queue);
}

/// Requests are out, but no completion comes: checks the card. Reads the BAR.
[[gnu::noinline]] void DmaDevice::look_for_trouble() {
  const int state = pair_->dma().ring_state(nullptr, nullptr);
  if (state == static_cast<int>(regs::RingState::kRunning)) {
    return;  // the card itself gives up each request in time
  }
  base::log_error("%s: %s: what is under way has failed; stop the device and start it again",
                  name_.c_str(),
                  state < 0 ? "the card is gone, or was reset" : "the card stopped the queue");
  pair_.reset();
  for (const auto& channel : channels_) {
    channel->fail(Status::kLinkDown);
  }
}

void DmaDevice::dump(std::FILE* file) {
  std::fprintf(file, "  card %s, queue pair %u, destID 0x%x, %s\n", card_->name().c_str(), qp_,
               dest_id(),
               lost()     ? "lost"
               : started_ ? "started"
                          : "stopped");
  for (uint16_t i = 0; i < channels(); ++i) {
    if (has_channel(i)) {
      const DmaChannel& one = *channels_[i];
      std::fprintf(file, "  channel %u: %u slots, %u free, destID 0x%x\n", i, one.slots(),
                   one.room(), one.way().dest_id);
    }
  }
}

}  // namespace rio::pmd
