// The slow path of sending: long frames, frames of several segments, broadcasts, and frames to
// peers that do not take bundles.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "pmd/net/rx.hpp"
#include "pmd/net/tx.hpp"

namespace rio::pmd {
namespace {

/// Gives each message of a frame a reference to it.
void share(rte_mbuf& frame, uint32_t messages) {
  for (rte_mbuf* segment = &frame; segment != nullptr; segment = segment->next) {
    rte_mbuf_refcnt_update(segment, static_cast<int16_t>(messages - 1));
  }
}

void copy_out(const rte_mbuf& frame, uint32_t at, uint32_t bytes, uint8_t* to) {
  const void* const from = rte_pktmbuf_read(&frame, at, bytes, to);
  if (from != to) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

NetTx::Fate NetTx::send_slow(rte_mbuf& frame) {
  const uint32_t length_bytes = frame.pkt_len;
  if (length_bytes < RTE_ETHER_HDR_LEN || length_bytes > frame_bytes_max_) {
    counts_.lengths.add(1);
    rte_pktmbuf_free(&frame);
    return Fate::kTaken;
  }
  uint8_t bytes[sizeof(uint64_t)];
  const Mac mac =
      load_mac(static_cast<const uint8_t*>(rte_pktmbuf_read(&frame, 0, sizeof(uint64_t), bytes)));
  listen_if_alone();
  if (is_multicast(mac)) {
    return send_to_all(frame);
  }
  const uint32_t dest_id = peers_.receiver_of(mac);
  if (dest_id == kNoNetDestId) {
    counts_.no_peer.add(1);
    rte_pktmbuf_free(&frame);
    return Fate::kTaken;
  }
  if (!peers_.bundles.has(dest_id)) {
    return send_plain(frame, dest_id, false);
  }
  OpenBundle& lane = lane_of(mac);
  if (length_bytes > kCopiedBytesMax) {
    if (lane.mac == mac) {
      close(lane);  // its number comes first
    }
    return send_cut(frame, dest_id, !wide_);
  }
  // A small frame of several segments: it is copied into a bundle.
  const uint32_t bytes_in_bundle = item_bytes(length_bytes);
  if ((lane.mac != mac || lane.at + bytes_in_bundle > kBundleBytesMax) && !open(lane, mac)) {
    return Fate::kNotNow;
  }
  uint8_t* const to = lane.va + lane.at;
  lane.at += bytes_in_bundle;
  ++lane.items;
  store_word(to, length_bytes);
  store_word(to + bytes_in_bundle - sizeof(uint64_t), 0);
  copy_out(frame, 0, length_bytes, to + kItemHeaderBytes);
  rte_pktmbuf_free(&frame);
  return Fate::kTaken;
}

/// Processes doorbells if no peer is known, at most once a burst: a program that sends before it
/// has polled would miss peers that have joined.
void NetTx::listen_if_alone() {
  if (listened_at_ == bursts_ || rx_ == nullptr || !peers_.joined.is_empty()) {
    return;
  }
  listened_at_ = bursts_;
  rx_->listen();
  if (tells_ && lanes_open_ == 0) {  // only while no lane has reserved an entry of the ring
    const uint32_t before = bells_out_;
    stage_owed();
    room_ -= bells_out_ - before;
  }
}

/// Sends a frame in as many messages as it takes. @param copied copy all of it.
NetTx::Fate NetTx::send_cut(rte_mbuf& frame, uint32_t dest_id, bool copied) {
  Cutter cutter(frame, misaligned_, copied);
  const CutSize size = size_of(cutter);
  if (!has_room(size.entries, size.messages)) {
    // A frame in too many pieces would never find room: copy it.
    const uint32_t ring = 1u << config_.ring_log2;
    return !copied && size.entries > ring / 2 ? send_cut(frame, dest_id, true) : Fate::kNotNow;
  }
  if (size.in_place > 1) {
    share(frame, size.in_place);
  }
  Piece piece;
  for (uint32_t at = 0; cutter.next(&piece); at += piece.bytes) {
    send_piece(frame, dest_id, piece, size.messages == 1, at);
  }
  if (size.in_place == 0) {
    rte_pktmbuf_free(&frame);
  }
  counts_.bounced.add(size.in_place == size.messages ? 0 : 1);
  return Fate::kTaken;
}

/// Sends a piece. @param at its position in the frame. @param whole the piece is the whole frame.
void NetTx::send_piece(rte_mbuf& frame, uint32_t dest_id, const Piece& piece, bool whole,
                       uint32_t at) {
  const uint32_t record =
      take_record(dest_id, piece.places == 0 ? nullptr : &frame, at == 0 ? 1 : 0);
  uint8_t* const to = place_va(record);
  store_word(to, next_header(dest_id, 1));
  store_word(to + kBundleHeaderBytes,
             ItemHeader{.length_bytes = static_cast<uint16_t>(piece.bytes),
                        .total_bytes = static_cast<uint16_t>(whole ? 0 : frame.pkt_len),
                        .offset_bytes = static_cast<uint16_t>(whole ? 0 : at)}
                 .encode());
  if (piece.places == 0) {
    copy_out(frame, at, piece.bytes, to + kBundleBytesBefore);
    stage(place_iova(record), record, kBundleBytesBefore + piece.bytes, next_mbox());
    return;
  }
  stage_gather(record, next_mbox(), kBundleBytesBefore, piece);
}

/// Stages a message of a piece that stays in place. @param head_bytes in the record's place that
/// come before the piece.
void NetTx::stage_gather(uint32_t record, uint8_t mbox, uint16_t head_bytes, const Piece& piece) {
  TxGather message{};
  message.cookie = record;
  message.dest_id = records_[record].dest_id;
  message.mbox = mbox;
  message.iova[0] = place_iova(record);
  message.length_bytes[0] = head_bytes;
  const uint32_t heads = head_bytes != 0 ? 1 : 0;
  message.count = static_cast<uint8_t>(heads + piece.places);
  std::copy_n(piece.iova, piece.places, message.iova + heads);
  std::copy_n(piece.length_bytes, piece.places, message.length_bytes + heads);
  const uint32_t head = queue_->next_index();
  ++staged_;
  [[maybe_unused]] const bool is_staged = queue_->stage_gather(message);
  assert(is_staged);  // Cutter keeps to the card's rules, and the caller has checked the room
  room_ -= queue_->next_index() - head;
}

/// Sends a plain frame. @param copied copy it in any case; then the frame stays the caller's.
NetTx::Fate NetTx::send_plain(rte_mbuf& frame, uint32_t dest_id, bool copied) {
  const uint32_t length_bytes = frame.pkt_len;
  if (length_bytes > kPlainBytesMax) {
    counts_.lengths.add(1);
    if (!copied) {
      rte_pktmbuf_free(&frame);
    }
    return Fate::kTaken;
  }
  Cutter cutter(frame, misaligned_, copied || (frame.nb_segs != 1 && !wide_));
  Piece piece;
  // One piece of at most as many bytes as a bundle holds; in one place a few more are possible.
  const bool one_place =
      !copied && frame.nb_segs == 1 && (rte_pktmbuf_iova(&frame) & misaligned_) == 0;
  const bool gathers = !one_place && !copied && cutter.next(&piece) &&
                       piece.bytes == length_bytes && piece.places > 1;
  if (!has_room(gathers ? with_skips(2) : 1, 1)) {
    return Fate::kNotNow;
  }
  const bool in_place = one_place || gathers;
  const uint32_t record = take_record(dest_id, in_place ? &frame : nullptr, 1);
  if (gathers) {
    stage_gather(record, config_.mbox, 0, piece);
    return Fate::kTaken;
  }
  if (!in_place) {
    copy_out(frame, 0, length_bytes, place_va(record));
    counts_.bounced.add(1);
  }
  stage(in_place ? rte_pktmbuf_iova(&frame) : place_iova(record), record, length_bytes,
        config_.mbox);
  if (!in_place && !copied) {
    rte_pktmbuf_free(&frame);
  }
  return Fate::kTaken;
}

/// Sends a broadcast or multicast: a copy to each peer that has joined.
NetTx::Fate NetTx::send_to_all(rte_mbuf& frame) {
  close_all();
  uint32_t entries = 0;
  peers_.joined.for_each([&](uint32_t) {
    entries += (frame.pkt_len + kItemBytesMax - 1) / kItemBytesMax;
    return true;
  });
  if (!has_room(entries, entries)) {
    if (entries <= 1u << config_.ring_log2) {
      return Fate::kNotNow;
    }
    counts_.no_peer.add(1);  // more peers than the ring has entries
    rte_pktmbuf_free(&frame);
    return Fate::kTaken;
  }
  const uint32_t length_bytes = frame.pkt_len;
  peers_.joined.for_each([&](uint32_t dest_id) {
    if (!has_room(1, 1)) {
      return false;  // peers that have joined since the count
    }
    if (!peers_.bundles.has(dest_id)) {
      static_cast<void>(send_plain(frame, dest_id, true));
      return true;
    }
    Cutter cutter(frame, misaligned_, true);
    Piece piece;
    for (uint32_t at = 0; has_room(1, 1) && cutter.next(&piece); at += piece.bytes) {
      send_piece(frame, dest_id, piece, piece.bytes == length_bytes, at);
    }
    return true;
  });
  rte_pktmbuf_free(&frame);
  return Fate::kTaken;
}

}  // namespace rio::pmd
