// The fast path of sending: small frames in one segment, copied into bundles.
#include "pmd/net/tx.hpp"

#include <rte_ethdev.h>

#include <bit>
#include <cerrno>

namespace rio::pmd {
namespace {

/// Copies exactly `length_bytes`: no byte more is read or written.
[[gnu::noinline]] void copy_exact(uint8_t* to, const uint8_t* from, uint64_t length_bytes) {
  if (length_bytes >= 64) {
    for (uint64_t at = 0; at + 64 <= length_bytes; at += 64) {
      copy_64(to + at, from + at);
    }
    copy_64(to + length_bytes - 64, from + length_bytes - 64);
  } else if (length_bytes >= 32) {
    std::memcpy(to, from, 32);
    std::memcpy(to + length_bytes - 32, from + length_bytes - 32, 32);
  } else if (length_bytes >= 16) {
    std::memcpy(to, from, 16);
    std::memcpy(to + length_bytes - 16, from + length_bytes - 16, 16);
  } else {
    std::memcpy(to, from, length_bytes);
  }
}

}  // namespace

/// The lane that the next frames of a burst go into.
struct NetTx::Filling {
  Mac mac = kNoMac;
  const rte_mempool* pool = nullptr;
  OpenBundle* lane = nullptr;
  uint8_t* to = nullptr;
  uint8_t* end = nullptr;
  uint32_t items = 0;
  uint64_t bytes = 0;  ///< total of the burst's frames
  // The receiver of the last long frame.
  Mac long_mac = kNoMac;
  uint32_t long_dest_id = 0;

  void close() {
    if (mac != kNoMac) {
      lane->at = static_cast<uint32_t>(to - lane->va);
      lane->items = items;
      mac = kNoMac;
    }
  }
};

/// Whether a frame can go back to its mempool without checks: one segment, not shared, with its own
/// data.
[[gnu::always_inline]] inline bool NetTx::is_simple(const rte_mbuf& frame) {
  static_assert(offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, refcnt) + 2);
  constexpr uint32_t kOneEach = 0x0001'0001;
  constexpr uint8_t kAttached = (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL) >> 56;
  uint32_t counts;
  std::memcpy(&counts, &frame.refcnt, sizeof(counts));
  uint8_t flags;  // the highest byte
  std::memcpy(&flags, reinterpret_cast<const uint8_t*>(&frame.ol_flags) + 7, sizeof(flags));
  return counts == kOneEach && (flags & kAttached) == 0;
}

/// Begins with a frame and those behind it. @return false: not a frame for the fast path, it does
/// not go into a bundle, or there is no room now.
inline bool NetTx::begin_filling(Filling* filling, const rte_mbuf& frame) {
  filling->close();
  if (frame.pkt_len < RTE_ETHER_HDR_LEN || frame.pkt_len > copied_bytes_max_ || !is_simple(frame)) {
    return false;
  }
  const Mac mac = load_mac(rte_pktmbuf_mtod(&frame, const uint8_t*));
  OpenBundle& lane = lane_of(mac);
  if ((lane.mac != mac || lane.at + item_bytes(frame.pkt_len) > kBundleBytesMax) &&
      !open(lane, mac)) {
    return false;
  }
  filling->mac = mac;
  filling->pool = frame.pool;
  filling->lane = &lane;
  filling->to = lane.va + lane.at;
  filling->end = lane.va + kBundleBytesMax;
  filling->items = lane.items;
  return true;
}

NetTx::NetTx(Peers& peers, const Caps& caps, const NetTxConfig& config)
    : peers_(peers), config_(config), misaligned_(caps.tx_addr_align - 1), wide_(caps.wide) {}

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
  bells_out_ = 0;
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

/// Opens a lane for an address, in place of the lane's last one. @return false: the receiver does
/// not take bundles, or there is no room.
[[gnu::noinline]] bool NetTx::open(OpenBundle& lane, Mac mac) {
  const uint32_t dest_id = peers_.receiver_of(mac);
  if (!takes_bundles(dest_id)) {
    return false;
  }
  if (lane.mac != kNoMac) {
    close(lane);
  }
  if (!has_room(1, 1)) {
    return false;
  }
  --room_;  // reserved for the lane's message
  const uint32_t record = take_record(dest_id, nullptr, 0);
  lane = {.mac = mac,
          .va = place_va(record),
          .at = kBundleHeaderBytes,
          .items = 0,
          .record = record,
          .dest_id = dest_id};
  lanes_open_ |= 1u << (&lane - lanes_.data());
  return true;
}

/// Turns the lane's bundle into a message.
void NetTx::close(OpenBundle& lane) {
  store_word(lane.va, next_header(lane.dest_id, lane.items));
  records_[lane.record].frames = lane.items;
  ++room_;  // the reserve, which stage() takes
  stage(place_iova(lane.record), lane.record, lane.at, next_mbox());
  lane.mac = kNoMac;
  lanes_open_ &= ~(1u << (&lane - lanes_.data()));
}

void NetTx::stage(uint64_t iova, uint32_t record, uint32_t length_bytes, uint8_t mbox) {
  --room_;
  ++staged_;
  queue_->stage_good(TxQueue::slot_words(records_[record].dest_id, mbox), length_bytes, iova,
                     record);
}

/// Copies small frames that go to the same receiver and can be freed together. @return how many;
/// the next one differs.
[[gnu::noinline]] uint32_t NetTx::fill(Filling* filling, rte_mbuf** frames, uint32_t n) {
  const Mac mac = filling->mac << 16;
  const rte_mempool* const pool = filling->pool;
  const uint8_t* const end = filling->end;
  const uint64_t most = uint64_t{copied_bytes_max_} - RTE_ETHER_HDR_LEN;
  uint8_t* to = filling->to;
  uint64_t sum = 0;
  rte_mbuf** next = frames;
  rte_mbuf** const stop = frames + n;
  for (; next != stop; ++next) {
    const rte_mbuf& frame = **next;
    const uint64_t length = frame.pkt_len;
    const auto* const from = rte_pktmbuf_mtod(&frame, const uint8_t*);
    uint8_t* const behind = to + kItemHeaderBytes + ((length + 7) & ~uint64_t{7});
    if (length - RTE_ETHER_HDR_LEN > most || behind > end || !is_simple(frame) ||
        frame.pool != pool || load_word(from) << 16 != mac) [[unlikely]] {
      break;
    }
    store_word(to, length);
    store_word(behind - sizeof(uint64_t), 0);  // the padding must not leak bytes of other frames
    if (length == 64) {
      copy_64(to + kItemHeaderBytes, from);
    } else {
      copy_exact(to + kItemHeaderBytes, from, length);
    }
    to = behind;
    sum += length;
  }
  const auto count = static_cast<uint32_t>(next - frames);
  filling->to = to;
  filling->items += count;
  filling->bytes += sum;
  return count;
}

/// Sends a long frame in place, behind headers in its headroom. @return false: it cannot go this
/// way, or not now.
bool NetTx::send_in_place(Filling* filling, rte_mbuf& frame) {
  const uint32_t length_bytes = frame.pkt_len;
  const uint64_t iova = rte_pktmbuf_iova(&frame);
  if (length_bytes <= kCopiedBytesMax || length_bytes > kItemBytesMax ||
      length_bytes > frame_bytes_max_ || !is_simple(frame) || frame.data_off < kBundleBytesBefore ||
      ((iova - kBundleBytesBefore) & misaligned_) != 0 || !has_room(1, 1)) {
    return false;
  }
  auto* const bytes = rte_pktmbuf_mtod(&frame, uint8_t*);
  const Mac mac = load_mac(bytes);
  if (mac != filling->long_mac) [[unlikely]] {
    const uint32_t dest_id = peers_.receiver_of(mac);
    if (!takes_bundles(dest_id)) {
      return false;
    }
    filling->long_mac = mac;
    filling->long_dest_id = dest_id;
  }
  OpenBundle& lane = lane_of(mac);
  if (lane.mac == mac) {
    close(lane);  // its number comes before this frame's
  }
  uint8_t* const before = bytes - kBundleBytesBefore;
  store_word(before, next_header(filling->long_dest_id, 1));
  store_word(before + kBundleHeaderBytes, length_bytes);
  stage(iova - kBundleBytesBefore, take_record(filling->long_dest_id, &frame, 1),
        kBundleBytesBefore + length_bytes, next_mbox());
  return true;
}

uint16_t NetTx::send(rte_mbuf** frames, uint16_t n) {
  Filling filling;
  uint32_t i = 0;
  while (i != n) {
    if (filling.mac != kNoMac) {
      const uint32_t filled = fill(&filling, frames + i, n - i);
      if (filled != 0) {
        rte_mempool_put_bulk(frames[i]->pool, reinterpret_cast<void**>(frames + i), filled);
      }
      i += filled;
      if (i == n) {
        break;
      }
    }
    rte_mbuf& frame = *frames[i];
    if (begin_filling(&filling, frame)) {
      continue;
    }
    const uint32_t length_bytes = frame.pkt_len;
    if (!send_in_place(&filling, frame) && send_slow(frame) == Fate::kNotNow) {
      break;
    }
    filling.bytes += length_bytes;
    ++i;
  }
  filling.close();
  counts_.frames.add(i);
  counts_.bytes.add(filling.bytes);
  return static_cast<uint16_t>(i);
}

void NetTx::close_all() {
  for (; lanes_open_ != 0; lanes_open_ &= lanes_open_ - 1) {
    close(lanes_[static_cast<uint32_t>(std::countr_zero(lanes_open_))]);
  }
}

uint16_t NetTx::burst(rte_mbuf** frames, uint16_t n) {
  // Programs drop refused frames, so wait for a thread that only rings doorbells.
  if (!turn_.take() && !turn_.take_soon()) [[unlikely]] {
    return 0;
  }
  __atomic_store_n(&bursts_, bursts_ + 1, __ATOMIC_RELAXED);  // pairs with tell_if_idle()
  uint16_t taken = 0;
  if (queue_ != nullptr) [[likely]] {
    if (n == 0 || queue_->outstanding() >= reap_at_) {
      reap();
    }
    const uint32_t head_before = queue_->begin_stage();
    staged_ = 0;
    if (tells_ && peers_.owed.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      stage_owed();
    }
    room_ = queue_->free_count();
    taken = paused_.load(std::memory_order_relaxed) ? uint16_t{0} : send(frames, n);
    // A frame that found no room may need the whole ring: every outstanding message is in its way.
    reap_at_ = taken == n ? kReapAt : 1;
    close_all();
    counts_.messages.add(staged_);
    queue_->end_burst(head_before);
  }
  turn_.give();
  return taken;
}

}  // namespace rio::pmd
