// The structs of riopmd.h are those of the driver: same size, same offsets, same codes.
#include <cstddef>
#include <type_traits>

#include "pmd/api/riopmd.h"
#include "pmd/bus/bus.hpp"
#include "pmd/dev/rail_state.hpp"
#include "pmd/dev/tx_queue.hpp"
#include "pmd/dev/types.hpp"
#include "pmd/dev/window_table.hpp"

namespace rio::pmd {
namespace {

// Each line stands for one member: same offset and same size on both sides.
#define SAME(c_type, type, member)                                           \
  static_assert(offsetof(struct c_type, member) == offsetof(type, member) && \
                sizeof(c_type::member) == sizeof(type::member))
#define SAME_SIZE(c_type, type)                                                              \
  static_assert(sizeof(struct c_type) == sizeof(type) && alignof(c_type) == alignof(type) && \
                std::is_trivially_copyable_v<type> && std::is_standard_layout_v<type>)
#define SAME_CODE(c_code, code) static_assert(static_cast<int>(c_code) == static_cast<int>(code))

SAME_SIZE(rio_tx_message, TxMessage);
SAME(rio_tx_message, TxMessage, iova);
SAME(rio_tx_message, TxMessage, data);
SAME(rio_tx_message, TxMessage, info);
SAME(rio_tx_message, TxMessage, cookie);
SAME(rio_tx_message, TxMessage, dest_id);
SAME(rio_tx_message, TxMessage, length_bytes);
SAME(rio_tx_message, TxMessage, mbox);
SAME(rio_tx_message, TxMessage, flags);

SAME_SIZE(rio_tx_gather, TxGather);
SAME(rio_tx_gather, TxGather, cookie);
SAME(rio_tx_gather, TxGather, iova);
SAME(rio_tx_gather, TxGather, length_bytes);
SAME(rio_tx_gather, TxGather, dest_id);
SAME(rio_tx_gather, TxGather, count);
SAME(rio_tx_gather, TxGather, mbox);
SAME(rio_tx_gather, TxGather, flags);

SAME_SIZE(rio_tx_done, TxDone);
SAME(rio_tx_done, TxDone, cookie);
SAME(rio_tx_done, TxDone, time_ticks);
SAME(rio_tx_done, TxDone, status);
SAME(rio_tx_done, TxDone, retries);

SAME_SIZE(rio_rx_buffer, RxBuffer);
SAME(rio_rx_buffer, RxBuffer, iova);
SAME(rio_rx_buffer, RxBuffer, cookie);

SAME_SIZE(rio_rx_message, RxMessage);
SAME(rio_rx_message, RxMessage, cookie);
SAME(rio_rx_message, RxMessage, source);
SAME(rio_rx_message, RxMessage, dest_id);
SAME(rio_rx_message, RxMessage, arrival);
SAME(rio_rx_message, RxMessage, time_ticks);
SAME(rio_rx_message, RxMessage, length_bytes);
SAME(rio_rx_message, RxMessage, mbox);
SAME(rio_rx_message, RxMessage, letter);
SAME(rio_rx_message, RxMessage, segments);
SAME(rio_rx_message, RxMessage, status);

SAME_SIZE(rio_dedicated_entry, DedicatedEntry);
SAME(rio_dedicated_entry, DedicatedEntry, iova);
SAME(rio_dedicated_entry, DedicatedEntry, cookie);
SAME(rio_dedicated_entry, DedicatedEntry, size_bytes);

SAME_SIZE(rio_entry_done, EntryDone);
SAME(rio_entry_done, EntryDone, cookie);
SAME(rio_entry_done, EntryDone, bytes);
SAME(rio_entry_done, EntryDone, status);
SAME(rio_entry_done, EntryDone, retries);

SAME_SIZE(rio_doorbell, DoorbellEvent);
SAME(rio_doorbell, DoorbellEvent, source);
SAME(rio_doorbell, DoorbellEvent, dest_id);
SAME(rio_doorbell, DoorbellEvent, time_ticks);
SAME(rio_doorbell, DoorbellEvent, info);

SAME_SIZE(rio_dma_request, DmaRequest);
SAME(rio_dma_request, DmaRequest, rio_addr);
SAME(rio_dma_request, DmaRequest, iova);
SAME(rio_dma_request, DmaRequest, cookie);
SAME(rio_dma_request, DmaRequest, dest_id);
SAME(rio_dma_request, DmaRequest, length_bytes);
SAME(rio_dma_request, DmaRequest, op);
SAME(rio_dma_request, DmaRequest, prio);

SAME_SIZE(rio_event, CardEvent);
SAME(rio_event, CardEvent, type);
SAME(rio_event, CardEvent, source);
SAME(rio_event, CardEvent, info);
SAME(rio_event, CardEvent, data);

SAME_SIZE(rio_barrier_desc, regs::BarrierDesc);
SAME(rio_barrier_desc, regs::BarrierDesc, control);
SAME(rio_barrier_desc, regs::BarrierDesc, group);
SAME(rio_barrier_desc, regs::BarrierDesc, peers);
SAME(rio_barrier_desc, regs::BarrierDesc, send);
SAME(rio_barrier_desc, regs::BarrierDesc, await);
SAME(rio_barrier_desc, regs::BarrierDesc, reserved);

SAME_SIZE(rio_barrier_request, BarrierRequest);
SAME(rio_barrier_request, BarrierRequest, desc);  // NOLINT(bugprone-sizeof-expression): a pointer
SAME(rio_barrier_request, BarrierRequest, cookie);
SAME(rio_barrier_request, BarrierRequest, epoch);

SAME_SIZE(rio_barrier_done, BarrierDone);
SAME(rio_barrier_done, BarrierDone, cookie);
SAME(rio_barrier_done, BarrierDone, epoch);
SAME(rio_barrier_done, BarrierDone, resent);
SAME(rio_barrier_done, BarrierDone, slot);
SAME(rio_barrier_done, BarrierDone, status);
SAME(rio_barrier_done, BarrierDone, round);
SAME(rio_barrier_done, BarrierDone, peer);
SAME(rio_barrier_done, BarrierDone, retries);

static_assert(RIO_RAIL_ADDRESS == kRailStatusAddress);

SAME_SIZE(rio_window, Window);
SAME(rio_window, Window, rio_addr);
SAME(rio_window, Window, size_bytes);
SAME(rio_window, Window, iova);
SAME(rio_window, Window, rights);
SAME(rio_window, Window, source);
SAME(rio_window, Window, source_mask);
SAME(rio_window, Window, key);

SAME_SIZE(rio_memory, DmaMemory);
SAME(rio_memory, DmaMemory, va);
SAME(rio_memory, DmaMemory, iova);
SAME(rio_memory, DmaMemory, len_bytes);

SAME_SIZE(rio_stats, QueueStats);
SAME(rio_stats, QueueStats, messages);
SAME(rio_stats, QueueStats, bytes);
SAME(rio_stats, QueueStats, failed);
SAME(rio_stats, QueueStats, rejected);
SAME(rio_stats, QueueStats, bad_completions);

SAME_CODE(RIO_OK, Status::kOk);
SAME_CODE(RIO_RETRY_EXPIRED, Status::kRetryExpired);
SAME_CODE(RIO_RESPONSE_TIMEOUT, Status::kResponseTimeout);
SAME_CODE(RIO_ERROR_RESPONSE, Status::kErrorResponse);
SAME_CODE(RIO_BAD_DESCRIPTOR, Status::kBadDescriptor);
SAME_CODE(RIO_HOST_READ_FAILED, Status::kHostReadFailed);
SAME_CODE(RIO_FLUSHED, Status::kFlushed);
SAME_CODE(RIO_LINK_DOWN, Status::kLinkDown);
SAME_CODE(RIO_RECEIVE_TIMEOUT, Status::kReceiveTimeout);
SAME_CODE(RIO_SIZE_MISMATCH, Status::kSizeMismatch);
SAME_CODE(RIO_FORMAT, Status::kFormat);
SAME_CODE(RIO_PEER_FAILED, Status::kPeerFailed);

SAME_CODE(RIO_BARRIER_RUN, regs::BarrierOp::kRun);
SAME_CODE(RIO_BARRIER_LOAD, regs::BarrierOp::kLoad);
SAME_CODE(RIO_BARRIER_CANCEL, regs::BarrierOp::kCancel);

SAME_CODE(RIO_REJECT_NONE, Reject::kNone);
SAME_CODE(RIO_REJECT_LENGTH, Reject::kLength);
SAME_CODE(RIO_REJECT_ALIGNMENT, Reject::kAlignment);
SAME_CODE(RIO_REJECT_MAILBOX, Reject::kMailbox);
SAME_CODE(RIO_REJECT_OPERATION, Reject::kOperation);

SAME_CODE(RIO_RING_TX, regs::Ring::kTx);
SAME_CODE(RIO_RING_SHARED, regs::Ring::kShared);
SAME_CODE(RIO_RING_DOORBELL, regs::Ring::kDoorbell);
SAME_CODE(RIO_RING_DMA, regs::Ring::kDma);
SAME_CODE(RIO_RING_MAINT, regs::Ring::kMaint);
SAME_CODE(RIO_RING_BARRIER, regs::Ring::kBarrier);
SAME_CODE(RIO_RING_EVENT, regs::Ring::kEvent);
SAME_CODE(RIO_RING_DEDICATED0, regs::Ring::kDedicated0);

SAME_CODE(RIO_TX_ORDER, TxFlags::kOrder);
SAME_CODE(RIO_TX_INLINE, TxFlags::kInline);
SAME_CODE(RIO_TX_DOORBELL, TxFlags::kDoorbell);
SAME_CODE(RIO_TX_SSIZE_8, 1 << TxFlags::kSsizeShift);

SAME_CODE(RIO_NREAD, regs::DmaOp::kNread);
SAME_CODE(RIO_NWRITE, regs::DmaOp::kNwrite);
SAME_CODE(RIO_NWRITE_R, regs::DmaOp::kNwriteR);
SAME_CODE(RIO_SWRITE, regs::DmaOp::kSwrite);
SAME_CODE(RIO_ATOMIC_INC, regs::DmaOp::kAtomicInc);
SAME_CODE(RIO_ATOMIC_DEC, regs::DmaOp::kAtomicDec);
SAME_CODE(RIO_ATOMIC_SET, regs::DmaOp::kAtomicSet);
SAME_CODE(RIO_ATOMIC_CLEAR, regs::DmaOp::kAtomicClear);
SAME_CODE(RIO_ATOMIC_SWAP, regs::DmaOp::kAtomicSwap);
SAME_CODE(RIO_ATOMIC_CSWAP, regs::DmaOp::kAtomicCswap);

SAME_CODE(RIO_WINDOW_READ, WindowRights::kRead);
SAME_CODE(RIO_WINDOW_WRITE, WindowRights::kWrite);
SAME_CODE(RIO_WINDOW_ATOMIC, WindowRights::kAtomic);

static_assert(RIO_MESSAGE_BYTES == regs::kMessageBytesMax);
static_assert(RIO_DEDICATED_QUEUES == regs::kDedicatedQueues);
static_assert(RIO_GATHER_MAX == regs::kWideAddrs);
static_assert(RIO_MAINT_WORDS * sizeof(uint32_t) == regs::kMaintBytesMax);

static_assert(RIO_BARRIER_PEERS == 2 * regs::kBarrierRoundsMax);
static_assert(RIO_BARRIER_NO_SLOT == kBarrierNoSlot);
static_assert(RIO_BARRIER_CONTROL(3, 31, 3) ==
              (regs::barrier_desc::Control::op.mask() | regs::barrier_desc::Control::rounds.mask() |
               regs::barrier_desc::Control::prio.mask()));

// A published struct only grows at its end.
static_assert(sizeof(rio_options) == 104 && sizeof(rio_info) == 88);

}  // namespace
}  // namespace rio::pmd
