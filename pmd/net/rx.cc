#include "pmd/net/rx.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace rio::pmd {
namespace {

constexpr uint32_t kBuffers = 512;

}  // namespace

NetRx::NetRx(Bus& bus, const NetRxConfig& config, Peers& peers,
             std::function<void(uint32_t)> joined)
    : bus_(bus), config_(config), peers_(peers), joined_(std::move(joined)) {}

int NetRx::create(Bus& bus, const NetRxConfig& config, Peers& peers,
                  std::function<void(uint32_t dest_id)> joined, std::unique_ptr<NetRx>* out) {
  std::unique_ptr<NetRx> queue(new (std::nothrow) NetRx(bus, config, peers, std::move(joined)));
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int rc = bus.dma_alloc(kBuffers * regs::kMessageBytesMax, regs::kMessageBytesMax,
                                   &queue->buffers_);
      rc != 0) {
    return rc;
  }
  *out = std::move(queue);
  return 0;
}

NetRx::~NetRx() {
  if (buffers_.va != nullptr) {
    bus_.dma_free(buffers_);
  }
}

int NetRx::start(QueuePair& pair) {
  pair_ = &pair;
  const uint32_t n = std::min<uint32_t>(pair.shared().free_count(), kBuffers);
  const uint32_t posted = pair.shared().post_each(n, [this](size_t i) {
    return RxBuffer{buffers_.iova + uint64_t{i} * regs::kMessageBytesMax, i};
  });
  return posted == n ? 0 : -EIO;
}

const uint8_t* NetRx::bytes(const RxMessage& message) const {
  return static_cast<const uint8_t*>(buffers_.va) + message.cookie * regs::kMessageBytesMax;
}

/// Whether a message is a frame of who it says.
bool NetRx::good(const RxMessage& message) {
  if (message.status != Status::kOk) {
    counts_.failed.add(1);
    return false;
  }
  if (message.length_bytes < RTE_ETHER_HDR_LEN) {
    counts_.lengths.add(1);
    return false;
  }
  rte_ether_hdr header;
  std::memcpy(&header, bytes(message), sizeof(header));
  if (dest_id_of(header.src_addr) != message.source) {
    counts_.spoofed.add(1);
    return false;
  }
  return true;
}

/// @return false: no mbufs for the rest of it, or none may follow.
bool NetRx::fill(rte_mbuf& first, const uint8_t* from, uint32_t length_bytes) {
  first.pkt_len = length_bytes;
  first.port = config_.port;
  rte_mbuf* last = &first;
  for (uint32_t done = 0;;) {
    const uint32_t piece = std::min<uint32_t>(length_bytes - done, rte_pktmbuf_tailroom(last));
    std::memcpy(rte_pktmbuf_mtod(last, uint8_t*), from + done, piece);
    last->data_len = static_cast<uint16_t>(piece);
    done += piece;
    if (done == length_bytes) {
      return true;
    }
    rte_mbuf* const next = config_.scatter ? rte_pktmbuf_alloc(config_.pool) : nullptr;
    if (next == nullptr) {
      return false;
    }
    last->next = next;
    ++first.nb_segs;
    last = next;
  }
}

uint16_t NetRx::burst(rte_mbuf** frames, uint16_t n) {
  if (pair_ == nullptr) [[unlikely]] {
    return 0;
  }
  constexpr uint32_t kDoorbellBursts = 64;  // between looks at the doorbells
  RxMessage got[kBurst];
  rte_mbuf* mbufs[kBurst];
  const uint16_t count = pair_->shared().burst(got, std::min(n, kBurst));
  if (++bursts_ % kDoorbellBursts == 0) [[unlikely]] {
    look_at_doorbells();
  }
  if (count == 0) {
    return 0;
  }
  const bool have = rte_pktmbuf_alloc_bulk(config_.pool, mbufs, count) == 0;
  uint16_t taken = 0;
  uint64_t sum = 0;
  for (uint16_t i = 0; i < count; ++i) {
    const uint32_t length = got[i].length_bytes;
    if (!have) {
      counts_.no_mbuf.add(1);
    } else if (!good(got[i])) {
      rte_pktmbuf_free(mbufs[i]);
    } else if (!fill(*mbufs[i], bytes(got[i]), length)) {
      counts_.no_mbuf.add(1);
      rte_pktmbuf_free(mbufs[i]);
    } else {
      frames[taken++] = mbufs[i];
      sum += length;
    }
  }
  pair_->shared().post_each(count, [&](size_t i) {
    return RxBuffer{buffers_.iova + got[i].cookie * regs::kMessageBytesMax, got[i].cookie};
  });
  counts_.frames.add(taken);
  counts_.bytes.add(sum);
  return taken;
}

void NetRx::look_at_doorbells() {
  DoorbellEvent events[kBurst];
  const uint16_t n = pair_->doorbells().burst(events, kBurst);
  for (uint16_t i = 0; i < n; ++i) {
    const DoorbellEvent& event = events[i];
    if (event.source >= kNetDestIds) {
      continue;  // it has no address
    }
    if (event.info == kLeaveDoorbell) {
      counts_.leaves.add(peers_.joined.remove(event.source) ? 1 : 0);
      peers_.reachable.remove(event.source);
    } else if (event.info == kJoinDoorbell && !peers_.joined.add(event.source)) {
      peers_.reachable.add(event.source);
      counts_.joins.add(1);
      joined_(event.source);
    }
  }
}

}  // namespace rio::pmd
