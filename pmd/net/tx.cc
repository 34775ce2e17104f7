// The plain case: small frames in one piece, which are copied into bundles.
#include "pmd/net/tx.hpp"

#include <rte_ethdev.h>
#include <rte_memcpy.h>

#include <cerrno>

namespace rio::pmd {

NetTx::NetTx(Peers& peers, const Caps& caps, const NetTxConfig& config)
    : peers_(peers), config_(config), misaligned_(caps.tx_addr_align - 1), wide_(caps.wide) {
  for (Lane& lane : lanes_) {
    lane.mac = kNoMac;
  }
}

int NetTx::create(Bus& bus, const Caps& caps, Peers& peers, const NetTxConfig& config,
                  SharedPtr<NetTx>* out) {
  SharedPtr<NetTx> queue = make_shared_object<NetTx>(bus, peers, caps, config);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  queue->bus_ = &bus;
  const size_t count = size_t{1} << config.ring_log2;
  queue->free_records_ =
      static_cast<uint32_t*>(bus.shared_alloc(count * sizeof(uint32_t), RTE_CACHE_LINE_SIZE));
  queue->records_ =
      static_cast<Record*>(bus.shared_alloc(count * sizeof(Record), RTE_CACHE_LINE_SIZE));
  if (queue->free_records_ == nullptr || queue->records_ == nullptr) {
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < count; ++i) {
    queue->free_records_[queue->free_count_++] = static_cast<uint32_t>(count) - 1 - i;
  }
  if (const int rc = bus.dma_alloc(count * kBundleBytesMax, kBundleBytesMax, &queue->places_);
      rc != 0) {
    return rc;
  }
  *out = std::move(queue);
  return 0;
}

NetTx::~NetTx() {
  if (places_.va != nullptr) {
    bus_->dma_free(places_);
  }
  for (void* memory : {static_cast<void*>(free_records_), static_cast<void*>(records_)}) {
    if (memory != nullptr) {
      bus_->shared_free(memory);
    }
  }
}

void NetTx::start(TxQueue& queue, uint16_t epoch, uint32_t frame_bytes_max, bool tells,
                  uint32_t more_ids) {
  epoch_ = epoch;
  set_frame_bytes_max(frame_bytes_max);
  tells_ = tells;
  more_ids_ = more_ids;
  numbers_.fill(0);
  failures_.fill(0);
  failures_seen_ = false;
  queue_ = &queue;
}

uint32_t NetTx::take_record(uint32_t dest_id, rte_mbuf* chain, uint32_t frames) {
  const uint32_t record = free_records_[--free_count_];
  records_[record] = {chain, dest_id, frames};
  return record;
}

uint64_t NetTx::next_header(uint32_t dest_id, uint32_t items) {
  return BundleHeader{
      .items = static_cast<uint8_t>(items), .epoch = epoch_, .number = numbers_[dest_id]++}
      .encode();
}

/// A lane for a destID, instead of whoever had it. @return false: he takes no bundles, or there is
/// no room.
[[gnu::noinline]] bool NetTx::open(Lane& lane, Mac mac) {
  const uint32_t dest_id = dest_id_of(mac);
  if (dest_id == kNoNetDestId || !peers_.reachable.has(dest_id) || !peers_.bundles.has(dest_id)) {
    return false;
  }
  if (lane.mac != kNoMac) {
    close(lane);
  }
  if (!has_room(1, 1)) {
    return false;
  }
  --room_;  // of the entry that it becomes
  const uint32_t record = take_record(dest_id, nullptr, 0);
  lane = {.mac = mac,
          .va = place_va(record),
          .at = kBundleHeaderBytes,
          .items = 0,
          .record = record,
          .dest_id = dest_id};
  return true;
}

/// The bundle is a message.
void NetTx::close(Lane& lane) {
  store_word(lane.va, next_header(lane.dest_id, lane.items));
  records_[lane.record].frames = lane.items;
  ++room_;  // stage() takes it
  stage(place_iova(lane.record), lane.record, lane.at, config_.bundle_mbox);
  lane.mac = kNoMac;
}

/// @return false: it does not go into a bundle, or not now.
[[gnu::always_inline]] inline bool NetTx::append(const rte_mbuf& frame, uint32_t length_bytes) {
  const auto* const from = rte_pktmbuf_mtod(&frame, const uint8_t*);
  const Mac mac = load_mac(from);
  Lane& lane = lane_of(mac);
  const uint32_t bytes = item_bytes(length_bytes);
  if (lane.mac != mac || lane.at + bytes > kBundleBytesMax) [[unlikely]] {
    if (!open(lane, mac)) {
      return false;
    }
  }
  uint8_t* const to = lane.va + lane.at;
  lane.at += bytes;
  ++lane.items;
  store_word(to, length_bytes);
  store_word(to + bytes - sizeof(uint64_t), 0);  // what pads it says nothing of other frames
  rte_memcpy(to + kItemHeaderBytes, from, length_bytes);
  return true;
}

/// A small frame in several pieces. @return false: not now.
bool NetTx::copy_chain(const rte_mbuf& frame, Mac mac) {
  const uint32_t length_bytes = frame.pkt_len;
  const uint32_t bytes = item_bytes(length_bytes);
  Lane& lane = lane_of(mac);
  if ((lane.mac != mac || lane.at + bytes > kBundleBytesMax) && !open(lane, mac)) {
    return false;
  }
  uint8_t* const to = lane.va + lane.at;
  lane.at += bytes;
  ++lane.items;
  store_word(to, length_bytes);
  store_word(to + bytes - sizeof(uint64_t), 0);
  const void* const all = rte_pktmbuf_read(&frame, 0, length_bytes, to + kItemHeaderBytes);
  if (all != to + kItemHeaderBytes) {
    std::memcpy(to + kItemHeaderBytes, all, length_bytes);
  }
  return true;
}

void NetTx::free_copied(rte_mbuf** frames, uint16_t n) {
  if (n == 0) {
    return;
  }
  if (config_.fast_free) {
    rte_mempool_put_bulk(frames[0]->pool, reinterpret_cast<void**>(frames), n);
  } else {
    rte_pktmbuf_free_bulk(frames, n);
  }
}

void NetTx::stage(uint64_t iova, uint32_t record, uint32_t length_bytes, uint8_t mbox) {
  if (staged_count_ == kBurst) {
    stage_staged();
  }
  --room_;
  staged_[staged_count_++] = {.iova = iova,
                              .cookie = record,
                              .dest_id = records_[record].dest_id,
                              .length_bytes = static_cast<uint16_t>(length_bytes),
                              .mbox = mbox,
                              .flags = 0};
}

void NetTx::stage_staged() {
  const uint32_t count = staged_count_;
  staged_count_ = 0;
  const uint32_t taken =
      count == 0 ? 0 : queue_->stage(staged_.data(), static_cast<uint16_t>(count));
  counts_.messages.add(taken);
  for (uint32_t i = taken; i < count; ++i) {
    not_staged(staged_[i].cookie);
  }
}

void NetTx::stage_gather(const TxGather& message) {
  stage_staged();
  room_ -= 2;
  if (queue_->stage_gather(message)) {
    counts_.messages.add(1);
  } else {
    not_staged(message.cookie);
  }
}

/// Room was asked for: the driver refused it.
void NetTx::not_staged(uint64_t cookie) {
  const Record& record = records_[cookie];
  counts_.lengths.add(record.frames);
  rte_pktmbuf_free(record.chain);
  free_records_[free_count_++] = static_cast<uint32_t>(cookie);
}

uint16_t NetTx::send(rte_mbuf** frames, uint16_t n) {
  uint64_t bytes = 0;
  uint16_t copied = 0;  // frames from here on were copied, and are not freed yet
  uint16_t i = 0;
  for (; i < n; ++i) {
    rte_mbuf& frame = *frames[i];
    const uint32_t length_bytes = frame.pkt_len;
    bytes += length_bytes;
    if (length_bytes - RTE_ETHER_HDR_LEN <= copied_bytes_max_ - RTE_ETHER_HDR_LEN &&
        frame.nb_segs == 1 && append(frame, length_bytes)) [[likely]] {
      continue;
    }
    free_copied(frames + copied, static_cast<uint16_t>(i - copied));
    copied = i;
    if (send_other(frame) == Fate::kNotNow) {
      bytes -= length_bytes;
      break;
    }
    ++copied;
  }
  free_copied(frames + copied, static_cast<uint16_t>(i - copied));
  counts_.frames.add(i);
  counts_.bytes.add(bytes);
  return i;
}

uint16_t NetTx::burst(rte_mbuf** frames, uint16_t n) {
  // Programs drop what is not taken: who only rings doorbells is waited for.
  if (!turn_.take() && !turn_.take_soon()) [[unlikely]] {
    return 0;
  }
  __atomic_store_n(&bursts_, bursts_ + 1, __ATOMIC_RELAXED);  // pairs with tell_if_idle()
  uint16_t taken = 0;
  if (queue_ != nullptr) [[likely]] {
    reap();
    const uint32_t head_before = queue_->begin_stage();
    if (tells_ && peers_.owed.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      stage_owed();
    }
    room_ = queue_->free_count();
    taken = send(frames, n);
    for (Lane& lane : lanes_) {
      if (lane.mac != kNoMac) {
        close(lane);
      }
    }
    stage_staged();
    queue_->end_burst(head_before);
  }
  turn_.give();
  return taken;
}

}  // namespace rio::pmd
