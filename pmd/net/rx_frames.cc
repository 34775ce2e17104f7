// The slow path of receiving, frame by frame: long frames, parts, plain frames, and frames for
// other queues.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "pmd/net/rx.hpp"

namespace rio::pmd {

/// Takes the next item of the current message, of any kind.
NetRx::Took NetRx::take_item(NetRxQueue& polled, rte_mbuf** out) {
  const auto left = static_cast<uint64_t>(current_.end - current_.at);
  if (current_.plain) {
    const uint8_t* const from = current_.at - kBundleHeaderBytes;
    const Took took = take_frame(polled, from, static_cast<uint32_t>(current_.end - from), out);
    current_.items = took == Took::kNotNow ? 1 : 0;
    return took;
  }
  ItemHeader item{};
  if (left < kItemHeaderBytes + 8 ||
      !ItemHeader::decode(load_word(current_.at), left - kItemHeaderBytes, &item)) {
    counts_.bad_bundles.add(1);
    current_.items = 0;
    return Took::kNothing;
  }
  const uint8_t* const from = current_.at + kItemHeaderBytes;
  const Took took = item.total_bytes == 0 ? take_frame(polled, from, item.length_bytes, out)
                                          : take_part(polled, item, from, out);
  if (took != Took::kNotNow) {
    current_.at += item_bytes(item.length_bytes);
    --current_.items;
  }
  return took;
}

/// The queue that a frame is for.
NetRxQueue& NetRx::queue_for(NetRxQueue& polled, const uint8_t* from, uint32_t length_bytes) {
  if (!several_) {
    return polled;
  }
  return *queues_[std::min<uint16_t>(rss_->queue_of(rss_->hash(from, length_bytes)),
                                     static_cast<uint16_t>(queues_count_ - 1))];
}

/// Copies a frame into as many mbufs as it takes. @return null: there are not enough now.
rte_mbuf* NetRx::copy(NetRxQueue& queue, const uint8_t* from, uint32_t length_bytes) {
  rte_mbuf* const first = rte_pktmbuf_alloc(queue.pool);
  rte_mbuf* last = first;
  for (uint32_t at = 0; last != nullptr;) {
    const uint32_t bytes = std::min<uint32_t>(length_bytes - at, queue.room_bytes);
    std::memcpy(rte_pktmbuf_mtod(last, uint8_t*), from + at, bytes);
    last->data_len = static_cast<uint16_t>(bytes);
    at += bytes;
    if (at == length_bytes) {
      first->pkt_len = length_bytes;
      first->port = static_cast<uint16_t>(queue.rearm >> 48);
      return first;
    }
    rte_mbuf* const next = rte_pktmbuf_alloc(queue.pool);
    last->next = next;
    first->nb_segs = static_cast<uint16_t>(first->nb_segs + (next != nullptr ? 1 : 0));
    last = next;
  }
  rte_pktmbuf_free(first);
  queue.counts.no_mbuf.add(1);
  return nullptr;
}

/// Gives a finished frame to its queue.
NetRx::Took NetRx::give(NetRxQueue& polled, NetRxQueue& queue, rte_mbuf* frame, rte_mbuf** out) {
  const uint32_t length_bytes = frame->pkt_len;
  if (several_ && rss_->types != 0) {
    const auto* const from = rte_pktmbuf_mtod(frame, const uint8_t*);
    frame->hash.rss = rss_->hash(from, frame->data_len);
    frame->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
  }
  if (&queue != &polled) {
    [[maybe_unused]] const int rc = rte_ring_sp_enqueue(queue.ring, frame);
    assert(rc == 0);  // has_place() has checked; the turn's holder is the ring's only producer
  }
  queue.held_since_ticks = 0;
  queue.counts.frames.add(1);
  queue.counts.bytes.add(length_bytes);
  *out = frame;
  return &queue == &polled ? Took::kFrame : Took::kNothing;
}

NetRx::Took NetRx::take_frame(NetRxQueue& polled, const uint8_t* from, uint32_t length_bytes,
                              rte_mbuf** out) {
  if (!good(from, length_bytes)) {
    return Took::kNothing;
  }
  NetRxQueue& queue = queue_for(polled, from, length_bytes);
  if (!has_place(polled, queue)) {
    refund(from);
    return hold(polled, queue);
  }
  rte_mbuf* frame = nullptr;
  if ((current_.plain || current_.alone) && length_bytes > config_.handed_bytes_min) {
    frame = hand_over(queue, from, length_bytes);
  }
  if (frame == nullptr && length_bytes > queue.room_bytes && !queue.scatter) {
    counts_.too_long.add(1);
    return Took::kNothing;
  }
  frame = frame != nullptr ? frame : copy(queue, from, length_bytes);
  if (frame == nullptr) {
    refund(from);
    return no_mbufs(polled, queue);
  }
  return give(polled, queue, frame, out);
}

/// Returns a storm control token: the frame will be checked again.
void NetRx::refund(const uint8_t* from) {
  if (is_multicast(from[0])) {
    storm_.refund();
  }
}

/// Whether a frame can be handed over to its queue.
bool NetRx::has_place(const NetRxQueue& polled, const NetRxQueue& queue) {
  return &queue == &polled || (!queue.stopped && rte_ring_free_count(queue.ring) != 0);
}

/// Hold a frame, and all frames behind it, while its queue goes on taking frames. A queue that took
/// none for 1 / kHoldsPerSecond is not polled and must not block the others: drop its frames until
/// it takes one again.
NetRx::Took NetRx::hold(const NetRxQueue& polled, NetRxQueue& queue) {
  if (&queue == &polled) {
    return Took::kNotNow;
  }
  const uint64_t now_ticks = rte_rdtsc();
  if (queue.held_since_ticks == 0) {
    queue.held_since_ticks = now_ticks;
  }
  if (!queue.stopped &&
      (now_ticks - queue.held_since_ticks) * kHoldsPerSecond <= rte_get_tsc_hz()) {
    return Took::kNotNow;
  }
  return miss(queue);
}

NetRx::Took NetRx::miss(NetRxQueue& queue) {
  queue.counts.ring_full.add(1);
  return Took::kNothing;
}

/// No mbuf for a frame: hold it if it is for the polling queue, or for a queue that frees mbufs by
/// emptying its ring. Another queue's shortage must not block this one.
NetRx::Took NetRx::no_mbufs(const NetRxQueue& polled, NetRxQueue& queue) {
  wait_for_mbufs();
  return &queue == &polled || rte_ring_count(queue.ring) != 0 ? hold(polled, queue) : miss(queue);
}

/// The missing mbufs may be in frames that are incomplete, and will stay so: give those up when
/// nothing has moved for as long as a bundle is awaited.
void NetRx::wait_for_mbufs() {
  const uint64_t now_ticks = rte_rdtsc();
  const bool still = current_.at == stuck_at_ && bursts_ == stuck_burst_ + 1;
  stuck_at_ = current_.at;
  stuck_burst_ = bursts_;
  if (!still) {
    stuck_since_ticks_ = now_ticks;
  } else if (now_ticks - stuck_since_ticks_ > rte_get_tsc_hz() / kWaitsPerSecond) {
    stuck_since_ticks_ = now_ticks;
    sources_.for_each([this](Source& source) { drop_partial(source); });
  }
}

void NetRx::drop_partial(Source& source) {
  if (source.partial != nullptr) {
    counts_.bad_parts.add(1);
    rte_pktmbuf_free(source.partial);
    source.partial = nullptr;
  }
}

/// Whether a bundle is the next one of a source, or the same one: then no part is missing between
/// them.
[[nodiscard]] static bool follows(const BundleHeader& header, const BundleHeader& before) {
  return header.epoch == before.epoch && static_cast<uint16_t>(header.number - before.number) <= 1;
}

/// Takes a part. Parts that are out of order lose their frame.
NetRx::Took NetRx::take_part(NetRxQueue& polled, const ItemHeader& part, const uint8_t* from,
                             rte_mbuf** out) {
  Source* const source = current_.source;
  if (source == nullptr || current_.late) {
    counts_.bad_parts.add(1);
    return Took::kNothing;
  }
  const BundleHeader header = header_of(current_.buffer);
  const uint32_t done = source->partial == nullptr ? 0 : source->partial->pkt_len;
  const bool first = part.offset_bytes == 0;
  const bool fits = first ? part.length_bytes < part.total_bytes
                          : done != 0 && part.offset_bytes == done &&
                                follows(header, source->partial_header) &&
                                part.total_bytes == source->partial_total_bytes &&
                                done + part.length_bytes <= part.total_bytes;
  if (first || !fits) {
    drop_partial(*source);
  }
  if (!fits) {
    counts_.bad_parts.add(first ? 1 : 0);
    return Took::kNothing;
  }
  if (first && (part.length_bytes < RTE_ETHER_HDR_LEN || part.total_bytes > frame_bytes_max_)) {
    (part.total_bytes > frame_bytes_max_ ? counts_.too_long : counts_.lengths).add(1);
    return Took::kNothing;
  }
  if (first && !good(from, part.length_bytes)) {
    return Took::kNothing;
  }
  // Only the first part has the headers that choose the queue.
  NetRxQueue& queue = first ? queue_for(polled, from, part.length_bytes) : *queues_[source->queue];
  const bool last = done + part.length_bytes == part.total_bytes;
  const bool place = !last || has_place(polled, queue);
  if (!place || !add_part(*source, queue, part, from)) {
    if (first) {
      refund(from);
    }
    const Took took = place ? no_mbufs(polled, queue) : hold(polled, queue);
    if (took != Took::kNotNow) {
      // hold() or no_mbufs() has counted it
      rte_pktmbuf_free(std::exchange(source->partial, nullptr));
    }
    return took;
  }
  source->partial_header = header;
  if (source->partial == nullptr || source->partial->pkt_len != part.total_bytes) {
    return Took::kNothing;
  }
  rte_mbuf* const frame = source->partial;
  source->partial = nullptr;
  return give(polled, queue, frame, out);
}

/// Adds a part to its frame. @return false: there are no mbufs now.
bool NetRx::add_part(Source& source, NetRxQueue& queue, const ItemHeader& part,
                     const uint8_t* from) {
  rte_mbuf* const before = source.partial;
  const uint32_t length_bytes = part.length_bytes;
  // A sender that cuts a frame into tiny parts must not consume an mbuf for each.
  if (before != nullptr && length_bytes <= rte_pktmbuf_tailroom(source.partial_last)) {
    rte_mbuf& last = *source.partial_last;
    std::memcpy(rte_pktmbuf_mtod_offset(&last, uint8_t*, last.data_len), from, length_bytes);
    last.data_len = static_cast<uint16_t>(last.data_len + length_bytes);
    before->pkt_len += length_bytes;
    return true;
  }
  if (part.total_bytes > queue.room_bytes && !queue.scatter) {
    counts_.too_long.add(1);
    return true;
  }
  rte_mbuf* more = nullptr;
  if (part.total_bytes > queue.room_bytes && current_.alone &&
      length_bytes > config_.handed_bytes_min) {
    more = hand_over(queue, from, length_bytes);
  }
  more = more != nullptr ? more : copy(queue, from, length_bytes);
  if (more == nullptr) {
    return false;
  }
  if (before == nullptr) {
    source.partial = more;
    source.partial_total_bytes = part.total_bytes;
    source.queue = queue.number;
  } else {
    source.partial_last->next = more;
    before->nb_segs = static_cast<uint16_t>(before->nb_segs + more->nb_segs);
    before->pkt_len += length_bytes;
  }
  source.partial_last = rte_pktmbuf_lastseg(more);
  return true;
}

}  // namespace rio::pmd
