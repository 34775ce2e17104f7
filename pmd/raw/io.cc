#include <algorithm>
#include <cstddef>
#include <cstring>

#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

// The C structs have the layout of pmd/dev's: buffers are passed on as they are.
template <typename Ours, typename Theirs>
constexpr bool kSame = sizeof(Ours) == sizeof(Theirs);
static_assert(kSame<TxMessage, rte_raw_rio_tx>);
static_assert(offsetof(TxMessage, flags) == offsetof(rte_raw_rio_tx, flags));
static_assert(kSame<TxDone, rte_raw_rio_tx_done>);
static_assert(offsetof(TxDone, retries) == offsetof(rte_raw_rio_tx_done, retries));
static_assert(kSame<RxBuffer, rte_raw_rio_buffer>);
static_assert(kSame<RxMessage, rte_raw_rio_message>);
static_assert(offsetof(RxMessage, status) == offsetof(rte_raw_rio_message, status));
static_assert(kSame<DedicatedEntry, rte_raw_rio_entry>);
static_assert(kSame<EntryDone, rte_raw_rio_done>);
static_assert(offsetof(EntryDone, retries) == offsetof(rte_raw_rio_done, retries));
static_assert(kSame<DoorbellEvent, rte_raw_rio_doorbell>);
static_assert(offsetof(DoorbellEvent, info) == offsetof(rte_raw_rio_doorbell, info));
static_assert(kSame<DmaRequest, rte_raw_rio_dma>);
static_assert(offsetof(DmaRequest, prio) == offsetof(rte_raw_rio_dma, prio));
static_assert(kSame<regs::BarrierDesc, rte_raw_rio_barrier_desc>);
static_assert(offsetof(regs::BarrierDesc, await) == offsetof(rte_raw_rio_barrier_desc, await));
static_assert(kSame<BarrierRequest, rte_raw_rio_barrier>);
static_assert(offsetof(BarrierRequest, epoch) == offsetof(rte_raw_rio_barrier, epoch));
static_assert(kSame<BarrierDone, rte_raw_rio_barrier_done>);
static_assert(offsetof(BarrierDone, retries) == offsetof(rte_raw_rio_barrier_done, retries));
static_assert(kSame<CardEvent, rte_raw_rio_event>);
static_assert(offsetof(CardEvent, data) == offsetof(rte_raw_rio_event, data));
static_assert(TxFlags::kOrder == RTE_RAW_RIO_TX_ORDER &&
              TxFlags::kInline == RTE_RAW_RIO_TX_INLINE &&
              TxFlags::kDoorbell == RTE_RAW_RIO_TX_DOORBELL &&
              TxFlags::kSsizeShift == RTE_RAW_RIO_TX_SSIZE_SHIFT);

/// Most items in one call, so that it rings one doorbell: a larger count returns short.
constexpr unsigned kBatch = 128;

/// Gathers structs from the buffers and posts them.
template <typename Item, typename Post>
int put(rte_rawdev_buf** buffers, unsigned count, Post&& post) {
  Item items[kBatch];
  const unsigned n = std::min(kBatch, count);
  for (unsigned i = 0; i < n; ++i) {
    std::memcpy(&items[i], buffers[i]->buf_addr, sizeof(Item));
  }
  return post(items, static_cast<uint16_t>(n));
}

/// Takes items until one is refused. @return how many.
template <typename Item, typename Take>
uint16_t take_each(const Item* items, uint16_t n, Take&& take) {
  uint16_t taken = 0;
  while (taken < n && take(items[taken])) {
    ++taken;
  }
  return taken;
}

template <typename Item, typename Fetch>
int get(rte_rawdev_buf** buffers, unsigned count, Fetch&& fetch) {
  Item items[kBatch];
  const unsigned n = fetch(items, static_cast<uint16_t>(std::min(kBatch, count)));
  for (unsigned i = 0; i < n; ++i) {
    std::memcpy(buffers[i]->buf_addr, &items[i], sizeof(Item));
  }
  return static_cast<int>(n);
}

struct Place {
  QueuePair* pair;
  uint32_t ring;
  DedicatedRxQueue* dedicated;  // null: the ring is another one
};

/// Finds the ring of a call. @return -ENODEV: the device is closed or not started, or the queue
/// pair is not this process's; -EINVAL: there is no such ring, or it is not open.
int find_place(rte_rawdev* dev, rte_rawdev_obj_t context, uint32_t default_ring, Place* out) {
  RawDevice* const device = device_of(dev);
  if (device == nullptr) {
    return -ENODEV;
  }
  rte_raw_rio_context at{.queue_pair = 0, .ring = static_cast<uint16_t>(default_ring)};
  if (context != nullptr) {
    at = *static_cast<const rte_raw_rio_context*>(context);
  }
  *out = {device->queue_pair(at.queue_pair), at.ring, nullptr};
  if (out->pair == nullptr) {
    return -ENODEV;
  }
  const bool is_slot = at.ring == RTE_RAW_RIO_BARRIER_LOAD || at.ring == RTE_RAW_RIO_BARRIER_GO;
  const uint32_t ring = is_slot ? uint32_t{RTE_RAW_RIO_BARRIER} : at.ring;
  if (ring < RTE_RAW_RIO_DEDICATED0) {
    const bool may_lack = ring == RTE_RAW_RIO_DMA || ring == RTE_RAW_RIO_BARRIER;
    return may_lack && (out->pair->rings() >> ring & 1) == 0 ? -EINVAL : 0;
  }
  const uint32_t i = at.ring - RTE_RAW_RIO_DEDICATED0;
  out->dedicated = i < regs::kDedicatedQueues ? out->pair->dedicated(i) : nullptr;
  return out->dedicated == nullptr ? -EINVAL : 0;
}

/// Loads slots of a barrier ring until one is refused, which is logged.
uint16_t load_slots(BarrierQueue& queue, const rte_raw_rio_barrier_load* loads, uint16_t n) {
  return take_each(loads, n, [&](const rte_raw_rio_barrier_load& one) {
    regs::BarrierDesc desc;
    std::memcpy(&desc, one.desc, sizeof desc);
    return queue.load(one.slot, desc, one.cookie) == 0;
  });
}

uint16_t start_slots(BarrierQueue& queue, const rte_raw_rio_barrier_go* starts, uint16_t n) {
  return take_each(
      starts, n, [&](const rte_raw_rio_barrier_go& one) { return queue.go(one.slot, one.epoch); });
}

}  // namespace

int enqueue_buffers(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count,
                    rte_rawdev_obj_t context) {
  Place at{};
  if (const int rc = find_place(dev, context, RTE_RAW_RIO_TX, &at); rc != 0) {
    return rc;
  }
  switch (at.ring) {
    case RTE_RAW_RIO_TX:
      return put<TxMessage>(buffers, count,
                            [&](auto... burst) { return at.pair->tx().burst(burst...); });
    case RTE_RAW_RIO_SHARED:
      return put<RxBuffer>(buffers, count,
                           [&](auto... burst) { return at.pair->shared().post(burst...); });
    case RTE_RAW_RIO_DMA:
      return put<DmaRequest>(buffers, count,
                             [&](auto... burst) { return at.pair->dma().post(burst...); });
    case RTE_RAW_RIO_BARRIER:
      return put<BarrierRequest>(buffers, count,
                                 [&](auto... burst) { return at.pair->barriers().post(burst...); });
    case RTE_RAW_RIO_BARRIER_LOAD:
      return put<rte_raw_rio_barrier_load>(
          buffers, count, [&](auto... burst) { return load_slots(at.pair->barriers(), burst...); });
    case RTE_RAW_RIO_BARRIER_GO:
      return put<rte_raw_rio_barrier_go>(buffers, count, [&](auto... burst) {
        return start_slots(at.pair->barriers(), burst...);
      });
    default:
      break;
  }
  return at.dedicated == nullptr ? -EINVAL
                                 : put<DedicatedEntry>(buffers, count, [&](auto... burst) {
                                     return at.dedicated->post(burst...);
                                   });
}

int dequeue_buffers(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count,
                    rte_rawdev_obj_t context) {
  Place at{};
  if (const int rc = find_place(dev, context, RTE_RAW_RIO_SHARED, &at); rc != 0) {
    return rc;
  }
  switch (at.ring) {
    case RTE_RAW_RIO_TX:
      return get<TxDone>(buffers, count,
                         [&](auto... burst) { return at.pair->tx().reap(burst...); });
    case RTE_RAW_RIO_SHARED:
      return get<RxMessage>(buffers, count,
                            [&](auto... burst) { return at.pair->shared().burst(burst...); });
    case RTE_RAW_RIO_DOORBELL:
      return get<DoorbellEvent>(
          buffers, count, [&](auto... burst) { return at.pair->doorbells().burst(burst...); });
    case RTE_RAW_RIO_DMA:
      return get<EntryDone>(buffers, count,
                            [&](auto... burst) { return at.pair->dma().reap(burst...); });
    case RTE_RAW_RIO_BARRIER:
      return get<BarrierDone>(buffers, count,
                              [&](auto... burst) { return at.pair->barriers().reap(burst...); });
    case RTE_RAW_RIO_EVENT:
      return get<CardEvent>(buffers, count,
                            [&](auto... burst) { return at.pair->events().burst(burst...); });
    default:
      break;
  }
  return at.dedicated == nullptr ? -EINVAL : get<EntryDone>(buffers, count, [&](auto... burst) {
    return at.dedicated->reap(burst...);
  });
}

}  // namespace rio::pmd
