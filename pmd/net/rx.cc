// The fast path of receiving: bundles of small frames for the port's only queue.
#include "pmd/net/rx.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rio::pmd {
namespace {

/// Bursts between checks for doorbells.
constexpr uint32_t kDoorbellBursts = 64;
/// Bytes copied at once. Copying more than the frame does no harm where there is room.
constexpr uint32_t kStride = 64;

/// Copies all but the first stride.
[[gnu::noinline]] void copy_more(uint8_t* to, const uint8_t* from, uint64_t length_bytes) {
  for (uint64_t at = kStride; at < length_bytes; at += kStride) {
    copy_64(to + at, from + at);
  }
}

/// Sets all fields of a frame in one mbuf, by four words.
[[gnu::always_inline]] inline void describe(rte_mbuf& mbuf, uint64_t rearm, uint64_t length_bytes) {
  static_assert(offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2 &&
                offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, data_off) + 4 &&
                offsetof(rte_mbuf, port) == offsetof(rte_mbuf, data_off) + 6 &&
                offsetof(rte_mbuf, ol_flags) == offsetof(rte_mbuf, data_off) + 8 &&
                offsetof(rte_mbuf, pkt_len) == offsetof(rte_mbuf, packet_type) + 4 &&
                offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, packet_type) + 8);
  auto* const fields = reinterpret_cast<uint8_t*>(&mbuf);
  store_word(fields + offsetof(rte_mbuf, data_off), rearm);
  store_word(fields + offsetof(rte_mbuf, ol_flags), 0);
  store_word(fields + offsetof(rte_mbuf, packet_type), length_bytes << 32);
  store_word(fields + offsetof(rte_mbuf, data_len), length_bytes);
}

/// Values that all small frames of a message share, in registers.
struct SmallItems {
  const uint8_t* at;
  const uint8_t* end;
  uint64_t longest_bytes;
  uint64_t rearm;
  Mac mac;
  uint64_t bytes = 0;  ///< total of the frames taken

  /// Copies small frames into mbufs. @return how many; the next frame is not small, or not valid.
  [[nodiscard, gnu::noinline]] uint32_t take(rte_mbuf** mbufs, uint32_t wanted);
};

uint32_t SmallItems::take(rte_mbuf** mbufs, uint32_t wanted) {
  // Locals: stores through byte pointers would make the compiler load members again each time.
  const uint8_t* const last = end;
  const uint64_t most = longest_bytes - RTE_ETHER_HDR_LEN;
  const uint64_t fields = rearm;
  const uint64_t source = mac << 16;
  const uint8_t* next = at;
  uint64_t sum = 0;
  uint32_t used = 0;
  for (; used != wanted; ++used) {
    // A small frame's header is a word that holds only the length. Behind the last item the buffer
    // holds arbitrary bytes: any length read there ends behind `end`, or is no valid length.
    const uint64_t length = load_word(next);
    if (length - RTE_ETHER_HDR_LEN > most) [[unlikely]] {
      break;
    }
    const uint8_t* const from = next + kItemHeaderBytes;
    const uint8_t* const behind = from + ((length + 7) & ~uint64_t{7});
    if (behind > last || load_word(from + RTE_ETHER_ADDR_LEN) << 16 != source ||
        is_multicast(from[0])) [[unlikely]] {
      break;
    }
    rte_mbuf& mbuf = *mbufs[used];
    describe(mbuf, fields, length);
    auto* const to = static_cast<uint8_t*>(mbuf.buf_addr) + RTE_PKTMBUF_HEADROOM;
    copy_64(to, from);
    if (length > kStride) {
      copy_more(to, from, length);
    }
    next = behind;
    sum += length;
  }
  at = next;
  bytes = sum;
  return used;
}

}  // namespace

NetRxQueue::~NetRxQueue() {
  drain();
  rte_ring_free(ring);
}

void NetRxQueue::drain() {
  void* frame = nullptr;
  while (ring != nullptr && rte_ring_sc_dequeue(ring, &frame) == 0) {
    rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  }
}

NetRx::NetRx(Peers& peers, const NetRxConfig& config) : peers_(peers), config_(config) {}

int NetRx::create(Bus& bus, const Caps& caps, Peers& peers, const NetRxConfig& config,
                  SharedPtr<NetRx>* out) {
  SharedPtr<NetRx> made = make_shared_object<NetRx>(bus, peers, config);
  if (made == nullptr) {
    return -ENOMEM;
  }
  // Buffers in the ring, as many that were handed over, and those in caches.
  const uint32_t ring = 1u << config.ring_log2;
  const uint32_t count = 2 * ring + std::max<uint32_t>(ring, 512);
  if (const int rc = made->buffers_.create(
          count, config.priv_bytes, std::max<uint32_t>(caps.shared_addr_align, RTE_CACHE_LINE_SIZE),
          bus.numa_node());
      rc != 0) {
    return rc;
  }
  *out = std::move(made);
  return 0;
}

int NetRx::start(SharedRxQueue& queue, DoorbellQueue& doorbells, uint32_t frame_bytes_max,
                 NetRxQueue* const* queues, uint16_t count, const Rss& rss, NetTx& teller) {
  std::copy_n(queues, count, queues_.begin());
  queues_count_ = count;
  several_ = count > 1;
  frame_bytes_max_ = frame_bytes_max;
  doorbells_ = &doorbells;
  teller_ = &teller;
  rss_ = &rss;
  const uint32_t ring = 1u << config_.ring_log2;
  order_.start(ring / 4, rte_get_tsc_hz() / kWaitsPerSecond);
  storm_.start(config_.storm_frames_per_s, rte_get_tsc_hz());
  repost_at_ = std::min<uint32_t>(ring / 4, 16);
  queue_ = &queue;
  lacking_ = 0;
  bursts_ = 0;
  last_source_id_ = kNoNetDestId;
  met_.clear();
  while (queue.free_count() != 0) {
    rte_mbuf* const buffer = buffers_.take();
    if (buffer == nullptr) {
      lacking_ = queue.free_count();  // frames received before a reset are still with the user
      return 0;
    }
    const RxBuffer one = RxBuffers::to_post(buffer);
    if (queue.post(&one, 1) != 1) {
      rte_pktmbuf_free(buffer);
      return -EIO;
    }
  }
  return 0;
}

void NetRx::stop(bool settled) {
  if (queue_ == nullptr) {
    return;
  }
  sources_.for_each([this](Source& source) { drop_partial(source); });
  if (current_.buffer != nullptr) {
    rte_mbuf_raw_free(std::exchange(current_.buffer, nullptr));
  }
  for (order_.give_up_waiting(true); order_.has_next(); order_.give_up_waiting(true)) {
    Source* source = nullptr;
    rte_mbuf_raw_free(order_.next(&source));
  }
  for (; fetched_at_ != fetched_count_; ++fetched_at_) {
    rte_mbuf_raw_free(reinterpret_cast<rte_mbuf*>(fetched_[fetched_at_].cookie));
  }
  for (; spent_count_ != 0; --spent_count_) {
    rte_mbuf_raw_free(spent_[spent_count_ - 1]);
  }
  for (uint16_t n = settled ? 1 : 0; n != 0;) {
    n = queue_->burst(fetched_.data(), kFetch);
    for (uint16_t i = 0; i < n; ++i) {
      rte_mbuf_raw_free(reinterpret_cast<rte_mbuf*>(fetched_[i].cookie));
    }
  }
  if (settled) {  // a card that is gone does not return all of them
    queue_->for_each_outstanding(
        [](uint64_t cookie) { rte_mbuf_raw_free(reinterpret_cast<rte_mbuf*>(cookie)); });
  }
  buffers_.put_back_spares();
  queue_ = nullptr;
}

/// Posts spent buffers again. Behind an incomplete message the ring may have no room for all of
/// them; the rest count as lacking until there is room.
void NetRx::post_spent() {
  const uint32_t room = queue_->free_count();
  while (lacking_ != 0 && spent_count_ < std::min(room, kSpentMax)) {
    rte_mbuf* const buffer = buffers_.take();
    if (buffer == nullptr) {
      break;
    }
    drop(buffer);
    --lacking_;
  }
  const uint32_t posted =
      queue_->post_each(spent_count_, [this](size_t i) { return RxBuffers::to_post(spent_[i]); });
  for (uint32_t i = posted; i < spent_count_; ++i) {
    rte_mbuf_raw_free(spent_[i]);
    ++lacking_;
  }
  spent_count_ = 0;
}

/// Called out of line, since it is rare.
[[gnu::noinline]] void NetRx::make_room_for_spent() {
  if (spent_count_ >= kSpentMax - kFetch) {
    post_spent();
  }
}

/// Makes the next message current. @return false: there is none now.
bool NetRx::next_message() {
  for (;;) {
    if (order_.has_next()) [[unlikely]] {
      Source* source = nullptr;
      rte_mbuf* const buffer = order_.next(&source);
      begin(buffer, source->dest_id, buffer->pkt_len);
      current_.source = source;
      return true;
    }
    if (fetched_at_ == fetched_count_) {
      if (!may_fetch_) {
        return false;
      }
      may_fetch_ = false;
      fetched_at_ = 0;
      fetched_count_ = queue_->burst(fetched_.data(), kFetch);
      if (fetched_count_ == 0) {
        return false;
      }
      counts_.messages.add(fetched_count_);
    }
    if (open(fetched_[fetched_at_++])) [[likely]] {
      return true;
    }
    make_room_for_spent();
  }
}

/// Makes a fetched message current. @return false: it has no frames for us now.
bool NetRx::open(const RxMessage& message) {
  auto* const buffer = reinterpret_cast<rte_mbuf*>(message.cookie);
  if (message.status != Status::kOk || message.source >= kNetDestIds) [[unlikely]] {
    counts_.failed.add(1);
    drop(buffer);
    return false;
  }
  if (message.mbox >= regs::kMultiMailboxes) [[unlikely]] {
    counts_.bad_mailboxes.add(1);
    drop(buffer);
    return false;
  }
  if (message.mbox != config_.mbox) [[likely]] {
    return open_bundle(buffer, message.source, message.length_bytes);
  }
  begin(buffer, message.source, message.length_bytes);
  current_.plain = true;
  current_.alone = false;
  current_.items = 1;
  return true;
}

bool NetRx::open_bundle(rte_mbuf* buffer, uint32_t source_id, uint32_t length_bytes) {
  BundleHeader header{};
  if (length_bytes <= kBundleBytesBefore ||
      !BundleHeader::decode(load_word(rte_pktmbuf_mtod(buffer, const uint8_t*)), &header))
      [[unlikely]] {
    counts_.bad_bundles.add(1);
    drop(buffer);
    return false;
  }
  counts_.bundles.add(1);
  Source* const source = sources_.find(source_id);
  bool late = false;
  if (source != nullptr) [[likely]] {
    const Order::Turn turn = order_.turn_of(*source, header, buffer);
    if (turn != Order::Turn::kNow) [[unlikely]] {
      late = turn == Order::Turn::kLate;
      (late ? counts_.late : counts_.out_of_order).add(1);
      if (!late) {
        buffer->pkt_len = length_bytes;
        return false;
      }
    }
  }
  begin(buffer, source_id, length_bytes);
  current_.source = source;
  current_.late = late;
  return true;
}

/// Makes a message current, as a bundle with a valid header. The caller adjusts what differs.
void NetRx::begin(rte_mbuf* buffer, uint32_t source_id, uint32_t length_bytes) {
  const auto* const bytes = rte_pktmbuf_mtod(buffer, const uint8_t*);
  const uint32_t items = bytes[2];
  const bool is_new = source_id != last_source_id_;
  if (is_new) [[unlikely]] {
    last_source_id_ = source_id;
    last_source_mac_ = mac_of(source_id);
  }
  current_ = {.buffer = buffer,
              .at = bytes + kBundleHeaderBytes,
              .end = bytes + length_bytes,
              .items = items,
              .plain = false,
              .alone = items == 1,
              .late = false,
              .source = nullptr,
              .own_mac = last_source_mac_,
              .port_mac = last_source_mac_};
  if (is_new) [[unlikely]] {
    meet(source_id);  // last: values that live across this call would cost every message
  }
}

/// Ends the current message. Its buffer, unless it was handed over, is free.
void NetRx::finish() {
  if (current_.buffer != nullptr) {
    drop(current_.buffer);
    current_.buffer = nullptr;
  }
  if (current_.source != nullptr) {
    order_.looked_at(*current_.source);
  }
}

/// Whether a frame's length and source address are valid, and storm control lets it pass. Refused
/// frames are counted by cause.
bool NetRx::good(const uint8_t* from, uint32_t length_bytes) {
  if (length_bytes < RTE_ETHER_HDR_LEN) [[unlikely]] {
    counts_.lengths.add(1);
    return false;
  }
  if (length_bytes > frame_bytes_max_) [[unlikely]] {
    counts_.too_long.add(1);
    return false;
  }
  const Mac mac = load_mac(from + RTE_ETHER_ADDR_LEN);
  if (mac != current_.port_mac && mac != current_.own_mac && !is_of_sender(mac)) [[unlikely]] {
    counts_.spoofed.add(1);
    return false;
  }
  if (is_multicast(from[0]) && !storm_.admit()) [[unlikely]] {
    counts_.storms.add(1);
    return false;
  }
  return true;
}

/// Takes small valid frames of the current bundle, while they are for this queue. @return how many.
uint16_t NetRx::take_small(NetRxQueue& queue, rte_mbuf** frames, uint16_t n) {
  const auto wanted = static_cast<uint16_t>(std::min<uint32_t>(n, current_.items));
  if (rte_mempool_get_bulk(queue.pool, reinterpret_cast<void**>(frames), wanted) != 0) {
    return 0;  // the caller takes them one by one
  }
  SmallItems items = {.at = current_.at,
                      .end = current_.end,
                      .longest_bytes = std::min(frame_bytes_max_, queue.room_bytes - kStride),
                      .rearm = queue.rearm,
                      .mac = current_.port_mac};
  const auto used = static_cast<uint16_t>(items.take(frames, wanted));
  current_.at = items.at;
  current_.items -= used;
  if (used != wanted) [[unlikely]] {
    rte_mempool_put_bulk(queue.pool, reinterpret_cast<void**>(frames + used), wanted - used);
  }
  queue.counts.frames.add(used);
  queue.counts.bytes.add(items.bytes);
  return used;
}

/// Turns the current buffer into the frame, if another buffer can replace it. @return null: none
/// can.
rte_mbuf* NetRx::hand_over(const NetRxQueue& queue, const uint8_t* from, uint64_t length_bytes) {
  rte_mbuf* const instead = buffers_.take();
  if (instead == nullptr) [[unlikely]] {
    return nullptr;
  }
  rte_mbuf* const frame = current_.buffer;
  drop(instead);
  current_.buffer = nullptr;
  const auto offset = static_cast<uint64_t>(from - static_cast<const uint8_t*>(frame->buf_addr));
  describe(*frame, (queue.rearm & ~uint64_t{0xFFFF}) | offset, length_bytes);
  return frame;
}

/// Takes the only frame of a bundle in place, if it is long and valid. @return whether it was
/// taken.
bool NetRx::take_alone(NetRxQueue& queue, rte_mbuf** out) {
  const uint64_t length = load_word(current_.at);
  const uint8_t* const from = current_.at + kItemHeaderBytes;
  const uint64_t shortest = uint64_t{config_.handed_bytes_min} + 1;
  if (length - shortest > frame_bytes_max_ - shortest || frame_bytes_max_ < shortest ||
      length > static_cast<uint64_t>(current_.end - from) ||
      load_mac(from + RTE_ETHER_ADDR_LEN) != current_.port_mac || is_multicast(from[0]))
      [[unlikely]] {
    return false;
  }
  rte_mbuf* const frame = hand_over(queue, from, length);
  if (frame == nullptr) [[unlikely]] {
    return false;
  }
  current_.items = 0;
  queue.counts.frames.add(1);
  queue.counts.bytes.add(length);
  *out = frame;
  return true;
}

inline uint16_t NetRx::receive(NetRxQueue& queue, rte_mbuf** frames, uint16_t n) {
  order_.check_clock();
  may_fetch_ = true;
  may_listen_ = true;
  uint16_t taken = 0;
  while (taken < n) {
    if (current_.buffer == nullptr && !next_message()) {
      break;
    }
    if (!several_ && current_.alone) {
      taken = static_cast<uint16_t>(taken + (take_alone(queue, &frames[taken]) ? 1 : 0));
    } else if (!several_ && !current_.plain) {
      taken += take_small(queue, frames + taken, static_cast<uint16_t>(n - taken));
    }
    Took took = Took::kNothing;
    while (current_.items != 0 && taken < n) {
      took = take_item(queue, &frames[taken]);
      if (took == Took::kNotNow) {
        break;
      }
      taken = static_cast<uint16_t>(taken + (took == Took::kFrame ? 1 : 0));
    }
    if (took == Took::kNotNow) [[unlikely]] {
      break;
    }
    if (current_.items == 0) {
      finish();
    }
    if (spent_count_ >= kSpentMax - kFetch) {
      post_spent();
    }
  }
  if (spent_count_ + lacking_ >= repost_at_) {
    post_spent();
  }
  // In every one of the first bursts, since programs send from the first one on.
  if (++bursts_ % kDoorbellBursts == 0 || bursts_ < kDoorbellBursts) [[unlikely]] {
    poll_doorbells();
  }
  return taken;
}

uint16_t NetRx::burst(NetRxQueue& queue, rte_mbuf** frames, uint16_t n) {
  if (!turn_.take()) [[unlikely]] {
    return 0;
  }
  uint16_t taken = 0;
  if (queue_ != nullptr && !queue.stopped) [[likely]] {
    taken = receive(queue, frames, n);
  }
  turn_.give();
  return taken;
}

uint16_t NetRx::burst_of_several(NetRxQueue& queue, rte_mbuf** frames, uint16_t n) {
  if (queue.stopped) [[unlikely]] {
    return 0;
  }
  const bool mine = turn_.take();
  // First the frames that other queues put into the ring: they arrived earlier.
  auto taken = static_cast<uint16_t>(
      rte_ring_sc_dequeue_burst(queue.ring, reinterpret_cast<void**>(frames), n, nullptr));
  if (!mine) {
    return taken;
  }
  if (queue_ != nullptr) {
    taken += receive(queue, frames + taken, static_cast<uint16_t>(n - taken));
  }
  turn_.give();
  return taken;
}

}  // namespace rio::pmd
