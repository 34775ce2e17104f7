#include "pmd/net/tx.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace rio::pmd {
namespace {

constexpr uint32_t kCopies = 256;
constexpr uint64_t kDoorbellCookie = 0;
constexpr uint64_t kCopy = 1;  // lowest bit of a cookie; above it the number of the place

[[nodiscard]] const rte_ether_addr& target_of(const rte_mbuf& frame) {
  return rte_pktmbuf_mtod(&frame, const rte_ether_hdr*)->dst_addr;
}

[[nodiscard]] TxMessage doorbell(uint32_t dest_id, uint16_t info) {
  return {.info = info,
          .cookie = kDoorbellCookie,
          .dest_id = dest_id,
          .length_bytes = 0,
          .mbox = 0,
          .flags = TxFlags::kDoorbell};
}

}  // namespace

NetTx::NetTx(Bus& bus, const Caps& caps, Peers& peers)
    : bus_(bus), peers_(peers), misaligned_(caps.tx_addr_align - 1) {
  for (uint32_t i = 0; i < kCopies; ++i) {
    free_copies_.push_back(i);
  }
}

int NetTx::create(Bus& bus, const Caps& caps, Peers& peers, std::unique_ptr<NetTx>* out) {
  std::unique_ptr<NetTx> queue(new (std::nothrow) NetTx(bus, caps, peers));
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int rc = bus.dma_alloc(kCopies * kFrameBytesMax, kFrameBytesMax, &queue->copies_);
      rc != 0) {
    return rc;
  }
  *out = std::move(queue);
  return 0;
}

NetTx::~NetTx() {
  if (copies_.va != nullptr) {
    bus_.dma_free(copies_);
  }
}

void NetTx::start(QueuePair& pair) {
  pair_ = &pair;
}

void NetTx::leave() {
  peers_.joined.for_each([this](uint32_t dest_id) {
    const TxMessage leave = doorbell(dest_id, kLeaveDoorbell);
    return pair_->tx().burst(&leave, 1) == 1;  // who is not told finds out by what he sends
  });
}

void NetTx::stop() {
  // Of a card that is gone some never come back.
  for (uint32_t before = 0; pair_ != nullptr && pair_->tx().outstanding() != before;) {
    before = pair_->tx().outstanding();
    reap();
  }
  pair_ = nullptr;
  const std::lock_guard guard(telling_);
  polled_ = false;
  owed_.clear();
  attention_.store(true, std::memory_order_relaxed);
}

void NetTx::reap() {
  TxDone done[kBurst];
  rte_mbuf* sent[kBurst];
  uint16_t n = 0;
  while ((n = pair_->tx().reap(done, kBurst)) != 0) {
    uint32_t count = 0;
    uint64_t refused = 0;
    for (uint16_t i = 0; i < n; ++i) {
      const uint64_t cookie = done[i].cookie;
      if (cookie == kDoorbellCookie) {
        continue;
      }
      if (done[i].status != Status::kOk) [[unlikely]] {
        ++refused;
        not_taken(cookie, done[i].status);
      }
      if ((cookie & kCopy) != 0) {
        free_copies_.push_back(static_cast<uint32_t>(cookie >> 1));
      } else {
        sent[count++] = reinterpret_cast<rte_mbuf*>(cookie);
      }
    }
    rte_pktmbuf_free_bulk(sent, count);
    counts_.refused.add(refused);
    if (n < kBurst) {
      break;
    }
  }
}

/// Who does not answer is not asked again until he joins.
[[gnu::noinline]] void NetTx::not_taken(uint64_t cookie, Status status) {
  const void* const frame =
      (cookie & kCopy) != 0 ? static_cast<uint8_t*>(copies_.va) + (cookie >> 1) * kFrameBytesMax
                            : rte_pktmbuf_mtod(reinterpret_cast<rte_mbuf*>(cookie), const void*);
  rte_ether_hdr header;
  std::memcpy(&header, frame, sizeof(header));
  const uint32_t dest_id = dest_id_of(header.dst_addr);
  if (dest_id != kNoNetDestId && status != Status::kFlushed) {
    peers_.reachable.remove(dest_id);
    peers_.joined.remove(dest_id);
  }
}

void NetTx::flush() {
  const uint16_t posted =
      staged_count_ == 0 ? uint16_t{0} : pair_->tx().burst(staged_, staged_count_);
  for (uint16_t i = posted; i < staged_count_; ++i) {  // room was asked for: refused by the driver
    if ((staged_[i].cookie & kCopy) != 0) {
      free_copies_.push_back(static_cast<uint32_t>(staged_[i].cookie >> 1));
    } else {
      rte_pktmbuf_free(reinterpret_cast<rte_mbuf*>(staged_[i].cookie));
    }
    counts_.lengths.add(1);
  }
  staged_count_ = 0;
}

bool NetTx::in_place(const rte_mbuf& frame) const {
  return frame.nb_segs == 1 && (rte_pktmbuf_iova(&frame) & misaligned_) == 0;
}

/// A place for a copy is free.
void NetTx::post_copy(const rte_mbuf& frame, uint32_t dest_id) {
  const uint32_t place = free_copies_.back();
  free_copies_.pop_back();
  auto* const to = static_cast<uint8_t*>(copies_.va) + uint64_t{place} * kFrameBytesMax;
  const uint32_t length = frame.pkt_len;
  const void* const bytes = rte_pktmbuf_read(&frame, 0, length, to);
  if (bytes != to) {
    std::memcpy(to, bytes, length);
  }
  staged_[staged_count_++] = {.iova = copies_.iova + uint64_t{place} * kFrameBytesMax,
                              .cookie = uint64_t{place} << 1 | kCopy,
                              .dest_id = dest_id,
                              .length_bytes = static_cast<uint16_t>(length),
                              .mbox = 0,
                              .flags = 0};
  counts_.bounced.add(1);
}

void NetTx::post_in_place(rte_mbuf& frame, uint32_t dest_id) {
  staged_[staged_count_++] = {.iova = rte_pktmbuf_iova(&frame),
                              .cookie = reinterpret_cast<uint64_t>(&frame),
                              .dest_id = dest_id,
                              .length_bytes = static_cast<uint16_t>(frame.pkt_len),
                              .mbox = 0,
                              .flags = 0};
}

/// Room for it is there. @return false: none for a copy.
bool NetTx::post(rte_mbuf& frame, uint32_t dest_id) {
  if (in_place(frame)) [[likely]] {
    post_in_place(frame, dest_id);
    return true;
  }
  if (free_copies_.empty()) {
    return false;
  }
  post_copy(frame, dest_id);
  rte_pktmbuf_free(&frame);
  return true;
}

/// Broadcast and multicast: to each that has joined. @return false: no room for all.
bool NetTx::send_to_all(rte_mbuf& frame) {
  flush();
  uint32_t count = 0;
  peers_.joined.for_each([&](uint32_t) {
    ++count;
    return true;
  });
  const bool copies = !in_place(frame);
  if (pair_->tx().free_count() < count || (copies && free_copies_.size() < count)) {
    if (pair_->tx().outstanding() != 0) {
      return false;
    }
    counts_.no_peer.add(1);  // there are more of them than the ring has entries
    count = 0;
  }
  // One reference for each, and ours until the end: the first may be sent before the last.
  rte_mbuf_refcnt_update(&frame, copies ? 0 : static_cast<int16_t>(count));
  peers_.joined.for_each([&](uint32_t dest_id) {
    if (staged_count_ == kBurst) {
      flush();
    }
    if (count == 0) {
      return false;
    }
    --count;
    copies ? post_copy(frame, dest_id) : post_in_place(frame, dest_id);
    return true;
  });
  flush();
  if (!copies) {  // of those that have left meanwhile
    rte_mbuf_refcnt_update(&frame, static_cast<int16_t>(-static_cast<int32_t>(count)));
  }
  rte_pktmbuf_free(&frame);
  return true;
}

/// @return false: not now.
bool NetTx::send(rte_mbuf& frame) {
  const uint32_t length = frame.pkt_len;
  if (length - RTE_ETHER_HDR_LEN > kFrameBytesMax - RTE_ETHER_HDR_LEN) [[unlikely]] {
    counts_.lengths.add(1);
    rte_pktmbuf_free(&frame);
    return true;
  }
  const rte_ether_addr& target = target_of(frame);
  const uint32_t dest_id = dest_id_of(target);
  if (dest_id != kNoNetDestId && peers_.reachable.has(dest_id)) [[likely]] {
    return post(frame, dest_id);
  }
  if (rte_is_multicast_ether_addr(&target) != 0) {
    return send_to_all(frame);
  }
  counts_.no_peer.add(1);
  rte_pktmbuf_free(&frame);
  return true;
}

uint16_t NetTx::burst(rte_mbuf** frames, uint16_t n) {
  if (attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    look_up();
  }
  if (pair_ == nullptr) [[unlikely]] {
    return 0;
  }
  reap();
  uint32_t room = pair_->tx().free_count();
  uint64_t bytes = 0;
  uint16_t taken = 0;
  for (; taken < n && room > staged_count_; ++taken) {
    const uint32_t length = frames[taken]->pkt_len;
    if (!send(*frames[taken])) {
      break;
    }
    bytes += length;
    if (staged_count_ == kBurst) {
      flush();
      room = pair_->tx().free_count();
    }
  }
  flush();
  counts_.frames.add(taken);
  counts_.bytes.add(bytes);
  return taken;
}

/// The first burst, or something is to be told.
[[gnu::noinline]] void NetTx::look_up() {
  const std::lock_guard guard(telling_);
  polled_ = true;
  attention_.store(false, std::memory_order_relaxed);
  if (pair_ != nullptr) {
    send_doorbells();
  }
}

void NetTx::send_doorbells() {
  owed_.for_each([this](uint32_t dest_id) {
    const TxMessage join = doorbell(dest_id, kJoinDoorbell);
    if (pair_->tx().burst(&join, 1) == 0) {
      attention_.store(true, std::memory_order_relaxed);  // the rest next time
      return false;
    }
    owed_.remove(dest_id);
    return true;
  });
}

void NetTx::join(uint32_t dest_id) {
  const std::lock_guard guard(telling_);
  owed_.add(dest_id);
  if (!polled_ && pair_ != nullptr) {
    reap();
    send_doorbells();
  }
  attention_.store(true, std::memory_order_relaxed);
}

}  // namespace rio::pmd
