/**
 * @file
 * Constants and structs of the driver's interface for C. Included by riopmd.h, which says what they
 * are for; no functions.
 */
#ifndef RIOPMD_TYPES_H
#define RIOPMD_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIO_API_VERSION 3u      /**< grows with each addition; see rio_api_version() */
#define RIO_MESSAGE_BYTES 4096u /**< longest message; size of a receive buffer */
#define RIO_DEDICATED_QUEUES 8u /**< of a queue pair */
#define RIO_GATHER_MAX 4u       /**< places of a gathered message */
#define RIO_MAINT_WORDS 16u     /**< words of a maintenance access */
#define RIO_BARRIER_PEERS 40u   /**< of a barrier: two for each of up to 20 rounds */
#define RIO_BARRIER_NO_PEER 0xFFFFFFFFu
#define RIO_BARRIER_NO_SLOT 0xFFu
#define RIO_RAIL_ADDRESS 0xFFFFFFFFFFFFFFC0u /**< RapidIO address of the status of a card */
#define RIO_RAIL_BYTES 64u                   /**< length of that status */

/** The outcome of an entry. The first three are the outcomes of a message that was sent:
 *  delivered; refused; in doubt (it may have arrived, the card never sends again by itself). */
enum rio_status {
  RIO_OK = 0,
  RIO_RETRY_EXPIRED = 1,
  RIO_RESPONSE_TIMEOUT = 2,
  RIO_ERROR_RESPONSE = 3,
  RIO_BAD_DESCRIPTOR = 4,
  RIO_HOST_READ_FAILED = 5, /**< the card could not read the memory: registered? */
  RIO_FLUSHED = 6,          /**< the ring was stopped first */
  RIO_LINK_DOWN = 7,
  RIO_RECEIVE_TIMEOUT = 8,
  RIO_SIZE_MISMATCH = 9,
  RIO_FORMAT = 10,
  RIO_PEER_FAILED = 11 /**< barrier: a member failed, or cancelled it */
};

/** Why a burst took fewer than it was given though there was room. */
enum rio_reject {
  RIO_REJECT_NONE = 0,
  RIO_REJECT_LENGTH = 1,    /**< 0, above 4096, or not what the card takes */
  RIO_REJECT_ALIGNMENT = 2, /**< address; see rio_info */
  RIO_REJECT_MAILBOX = 3,   /**< outside of 0 to 3 (several segments) or 0 to 63 */
  RIO_REJECT_OPERATION = 4  /**< operation, segment size, priority; barrier: group, rounds, slot */
};

/** Rings of a queue pair. Dedicated queue i is RIO_RING_DEDICATED0 + i. */
enum rio_ring {
  RIO_RING_TX = 0,
  RIO_RING_SHARED = 1,
  RIO_RING_DOORBELL = 2,
  RIO_RING_DMA = 3,
  RIO_RING_MAINT = 4,
  RIO_RING_BARRIER = 5,
  RIO_RING_EVENT = 6,
  RIO_RING_DEDICATED0 = 8
};
#define RIO_RING_BIT(ring) (1u << (ring)) /**< for sets of rings */

/** Bits of rio_tx_message::flags; the lowest two are the priority, 0 to 2. */
enum rio_tx_flags {
  RIO_TX_ORDER = 0x04,    /**< start after all responses to this (destination, mailbox) */
  RIO_TX_INLINE = 0x08,   /**< the bytes are at `data`, and are copied by the burst */
  RIO_TX_DOORBELL = 0x10, /**< a doorbell: `info` is sent */
  RIO_TX_SSIZE_8 = 1 << 5 /**< segments of 8 bytes; 2 << 5: 16; … 6 << 5: 256, as is 0 */
};

/** A message to send. */
struct rio_tx_message {
  union {
    uint64_t iova;    /**< bytes; the card's until the rio_tx_done. Aligned: rio_info */
    const void* data; /**< with RIO_TX_INLINE */
    uint64_t info;    /**< with RIO_TX_DOORBELL: 16 bits */
  };
  uint64_t cookie;       /**< comes back in rio_tx_done */
  uint32_t dest_id;      /**< destination */
  uint16_t length_bytes; /**< 1 to 4096; inline 1 to rio_info::inline_bytes */
  uint8_t mbox;          /**< 0 to 3; 0 to 63 if one segment holds the message */
  uint8_t flags;         /**< rio_tx_flags and priority */
};

/** A message gathered from two to four places; takes two entries of the ring. */
struct rio_tx_gather {
  uint64_t cookie;
  uint64_t iova[RIO_GATHER_MAX];
  uint16_t length_bytes[RIO_GATHER_MAX]; /**< at least 1; multiples of 8 but for the last */
  uint32_t dest_id;
  uint8_t count; /**< places, 2 to 4 */
  uint8_t mbox;
  uint8_t flags; /**< RIO_TX_ORDER, segment size, priority */
};

/** A sent message. */
struct rio_tx_done {
  uint64_t cookie;
  uint32_t time_ticks; /**< card's time of the last response */
  uint8_t status;      /**< rio_status */
  uint8_t retries;     /**< RETRY answers, at most 255 are counted */
};

/** A buffer of RIO_MESSAGE_BYTES for the shared queue; the card's until its rio_rx_message. */
struct rio_rx_buffer {
  uint64_t iova;   /**< aligned: rio_info::shared_addr_align */
  uint64_t cookie; /**< comes back in rio_rx_message */
};

/** A message from the shared queue. The buffer is the caller's again, whatever the status. */
struct rio_rx_message {
  uint64_t cookie;
  uint32_t source;  /**< destID of the sender */
  uint32_t dest_id; /**< own ID that it was sent to */
  uint32_t arrival; /**< counts messages by their first segment */
  uint32_t time_ticks;
  uint16_t length_bytes; /**< landed: padded to a multiple of 8 */
  uint8_t mbox;
  uint8_t letter;
  uint8_t segments;
  uint8_t status; /**< rio_status */
};

/** An entry for a dedicated queue: memory where one expected message lands. */
struct rio_dedicated_entry {
  uint64_t iova; /**< aligned: rio_info::dedicated_addr_align */
  uint64_t cookie;
  uint32_t size_bytes; /**< of the message: rio_info::dedicated_size_align; up to 4096 */
};

/** A completed dedicated or DMA entry. */
struct rio_entry_done {
  uint64_t cookie;
  uint32_t bytes; /**< landed or moved */
  uint8_t status; /**< rio_status */
  uint8_t retries;
};

/** A received doorbell. */
struct rio_doorbell {
  uint32_t source;
  uint32_t dest_id;
  uint32_t time_ticks;
  uint16_t info;
};

/** Operations of rio_dma_request. */
enum rio_dma_op {
  RIO_NREAD = 0,
  RIO_NWRITE = 1,
  RIO_NWRITE_R = 2, /**< with a response */
  RIO_SWRITE = 3,
  RIO_ATOMIC_INC = 4,
  RIO_ATOMIC_DEC = 5,
  RIO_ATOMIC_SET = 6,
  RIO_ATOMIC_CLEAR = 7,
  RIO_ATOMIC_SWAP = 8,
  RIO_ATOMIC_CSWAP = 9
};

/** A remote read, write or atomic. The local memory is the card's until the rio_entry_done. */
struct rio_dma_request {
  uint64_t rio_addr; /**< RapidIO address; the window's key in the top 16 bits */
  uint64_t iova;     /**< local bytes */
  uint64_t cookie;
  uint32_t dest_id;
  uint32_t length_bytes; /**< up to rio_info::dma_bytes; atomics 1, 2 or 4 */
  uint8_t op;            /**< rio_dma_op */
  uint8_t prio;          /**< 0 to 2 */
};

/** Operations of a barrier. */
enum rio_barrier_op {
  RIO_BARRIER_RUN = 0,   /**< join it */
  RIO_BARRIER_LOAD = 1,  /**< tell the card the group's peers: it refuses no early notification */
  RIO_BARRIER_CANCEL = 2 /**< cancel the epoch at all peers */
};
/** rio_barrier_desc::control. @param rounds 1 to rio_info::barrier_rounds. @param prio 0 to 2. */
#define RIO_BARRIER_CONTROL(op, rounds, prio) \
  ((uint32_t)(op) | (uint32_t)(rounds) << 4 | (uint32_t)(prio) << 9)

/** The notifications that a member of a group sends and awaits: a member sends its notifications of
 * round r once all that it awaits in earlier rounds has come, and leaves when all that it awaits
 * has come. Peer w (0 or 1) of round r has number 2r + w. The card refuses (RIO_BAD_DESCRIPTOR) a
 * round without a bit, a peer without bits, and bits beyond the rounds. */
struct rio_barrier_desc {
  uint32_t control;                  /**< RIO_BARRIER_CONTROL() */
  uint32_t group;                    /**< 0 to 127; its members agree on it */
  uint32_t unused[2];                /**< any values: the driver writes epoch and cookie here */
  uint32_t peers[RIO_BARRIER_PEERS]; /**< destIDs, or RIO_BARRIER_NO_PEER */
  uint64_t send;                     /**< bit 2r + w: this peer is sent a notification */
  uint64_t await;                    /**< bit 2r + w: a notification of this peer is awaited */
  uint32_t reserved[16];             /**< 0 */
};

/** A barrier to post. */
struct rio_barrier_request {
  const struct rio_barrier_desc* desc; /**< copied by rio_barrier_post() */
  uint64_t cookie;                     /**< comes back in rio_barrier_done */
  uint32_t epoch; /**< number of the barrier in its group: the next one each time */
};

/** A barrier that has ended. RIO_OK: all members have arrived. */
struct rio_barrier_done {
  uint64_t cookie; /**< of the request, or of the slot */
  uint32_t epoch;
  uint16_t resent; /**< notifications sent again, at most 65535 are counted */
  uint8_t slot;    /**< RIO_BARRIER_NO_SLOT: it was posted */
  uint8_t status;  /**< rio_status */
  uint8_t round;   /**< where it ended, unless RIO_OK: 0 to 19 */
  uint8_t peer;    /**< at which of the round's two peers, 0 or 1 */
  uint8_t retries; /**< RETRY answers, at most 255 are counted */
};

/** An event: port-write, link change, ring error. */
struct rio_event {
  uint8_t type; /**< see rio_event_name() */
  uint32_t source;
  uint32_t info;
  uint32_t data[4];
};

/** Bits of rio_window::rights. */
enum rio_window_rights { RIO_WINDOW_READ = 1, RIO_WINDOW_WRITE = 2, RIO_WINDOW_ATOMIC = 4 };

/** Memory that remote requests may touch. It is the card's until rio_window_close(). */
struct rio_window {
  uint64_t rio_addr;    /**< RapidIO address of the first byte; with a key below 2^48 */
  uint64_t size_bytes;  /**< at least 1 */
  uint64_t iova;        /**< of the first byte */
  uint8_t rights;       /**< rio_window_rights, at least one */
  uint32_t source;      /**< who may use it, in the bits of source_mask */
  uint32_t source_mask; /**< 0: all sources */
  uint16_t key;         /**< 0: none */
};

/** How busy a card is, by its own words. */
struct rio_rail_state {
  uint32_t sequence;   /**< number of the write, wraps; of a peer that of its card's last write */
  uint32_t reading;    /**< 1: it has host memory to read in order to send; else 0 */
  uint32_t receiving;  /**< 1: rx_bytes is not 0; else 0 */
  uint32_t tx_bytes;   /**< of messages and remote writes that have not ended; all ones: or more */
  uint32_t rx_bytes;   /**< still to come of messages and remote reads; all ones: or more */
  uint32_t link_up;    /**< 0 or 1 */
  uint32_t time_ticks; /**< of that card's clock */
};

/** Memory that the card can reach. */
struct rio_memory {
  void* va;
  uint64_t iova; /**< of the first byte; contiguous */
  size_t len_bytes;
};

/** Counts of a queue since it was opened. */
struct rio_stats {
  uint64_t messages; /**< completed with RIO_OK */
  uint64_t bytes;    /**< of those */
  uint64_t failed;   /**< completed with another status */
  uint64_t rejected; /**< refused by a burst */
  uint64_t bad_completions;
};

/** How a card is opened. Zero means the default, everywhere; set size_bytes:
 *  `struct rio_options options = {.size_bytes = sizeof options};` */
struct rio_options {
  uint32_t size_bytes;          /**< sizeof(struct rio_options): tells old programs from new ones */
  uint32_t queue_pair;          /**< which */
  uint32_t dest_id;             /**< of queue pair 0; queue pair i has dest_id + i */
  uint32_t dest_id_bits;        /**< 8, 16 (default) or 32 */
  uint32_t rings;               /**< RIO_RING_BITs; default: all that are there. Dedicated: later */
  uint32_t tx_entries;          /**< sizes: powers of two within rio_info; default 512 */
  uint32_t shared_entries;      /**< default 512 */
  uint32_t dedicated_entries;   /**< default 512 */
  uint32_t doorbell_entries;    /**< default 256 */
  uint32_t dma_entries;         /**< default 128 */
  uint32_t maint_entries;       /**< default 16 */
  uint32_t event_entries;       /**< default 64 */
  uint32_t response_timeout_us; /**< default 100000 */
  uint32_t receive_timeout_us;  /**< default 200000 */
  uint32_t retry_limit;         /**< default: never give up */
  uint32_t retry_delay_us;      /**< default 1 */
  uint32_t stop_timeout_ms;     /**< for the reset, and, with three response time-outs more, for
                                     starts and stops; default 1000 */
  uint32_t irq_rings;           /**< RIO_RING_BITs that rio_irq_fd() tells about; default none */
  uint32_t irq_moderation_us;   /**< at most one interrupt a ring in this time; up to 65535 */
  uint32_t receive_times;       /**< 1: rio_rx_message.time_ticks is wanted; default: it is 0 */
  uint32_t push;                /**< 1: short bursts to send are written into the card's slots, so
                                     that it need not read them; -ENOTSUP if it has none */
  uint32_t vf_queue_pairs;  /**< for each virtual function, the card's last ones; default: none */
  uint32_t barriers;        /**< 1: open the barrier ring, too; -ENOTSUP if the queue pair has none.
                                 Doorbells whose info has bit 15 are notifications of barriers then */
  uint32_t barrier_entries; /**< default 32 */
  uint32_t barrier_resend_max; /**< how often a notification is sent again; default 3 */
  uint32_t barrier_reserve;    /**< early notifications with room set aside for them; default 0 */
};

/** A card and what it can. Sizes and alignments in bytes. */
struct rio_info {
  uint32_t queue_pair;
  uint32_t dest_id;  /**< of this queue pair; 0xFFFFFFFF: none */
  int32_t numa_node; /**< -1: unknown */
  uint32_t link_up;  /**< 0 or 1 */
  uint32_t rings;    /**< open ones, RIO_RING_BITs */
  uint32_t emulated; /**< 1: figures are not a card's */
  uint32_t queue_pairs;
  uint32_t ring_entries_min;
  uint32_t ring_entries_max;
  uint32_t inline_bytes;
  uint32_t tx_addr_align;
  uint32_t shared_addr_align;
  uint32_t dedicated_addr_align;
  uint32_t dedicated_size_align;
  uint32_t dma_addr_align;
  uint32_t dma_bytes;      /**< longest request; 0: no DMA queue */
  uint32_t tick_ns;        /**< of time_ticks */
  uint32_t windows;        /**< 1: the queue pair has inbound windows */
  uint32_t wide;           /**< 1: rio_tx_burst_gather() works */
  uint32_t barrier_rounds; /**< most rounds of a barrier; 0: the card has no barrier engine */
  uint32_t barrier_slots;  /**< for rio_barrier_load() */
  uint32_t barrier_early;  /**< early notifications that the whole card has room for */
};

#ifdef __cplusplus
}
#endif

#endif /* RIOPMD_TYPES_H */
