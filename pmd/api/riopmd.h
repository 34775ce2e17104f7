/**
 * @file
 * The driver for C programs: open a card, send and receive, without EAL. docs/embedding.md has a
 * complete program. C11, needs no other header of ours; link with `pkg-config --libs riopmd`.
 *
 * Threads. Each queue (transmit, shared, doorbell, DMA, maintenance, events, barriers, every
 * dedicated one) belongs to one thread at a time, so different threads may poll different queues of
 * a card. The functions under "Control" lock what they share, and may be called by any thread, but
 * by one at a time for one rio_card; not in a hot loop: they may log, allocate, wait, and read the
 * BAR. No function starts a thread or changes an affinity, but rio_pin(), and what a name asks for.
 *
 * Results. Functions that return int give 0 (or what they say) or a negative errno; outputs are set
 * on success only; the reason and the remedy are in the log (rio_set_log). Bursts return how many
 * were done, 0 to n, never an error; a queue that is not open does nothing.
 *
 * Units and ownership are at each declaration. `iova` is an address as the card sees it
 * (rio_alloc, rio_iova), never a pointer. Structs of bursts are those of the driver itself: what is
 * passed is used in place, nothing is converted.
 */
#ifndef RIOPMD_H
#define RIOPMD_H

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

/** An open queue pair of a card. */
typedef struct rio_card rio_card;

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

/* ---- Control -------------------------------------------------------------------------------- */

/** Of the library that was loaded; additions keep old programs working. */
uint32_t rio_api_version(void);

/** Open a card and one of its queue pairs. The card is reset: other users of it lose their queues.
 *  @param name "emu:loop", "shm:FABRIC,id=3", "udp:FABRIC,id=3", "sim:SOCKET" or "0000:03:00.0";
 *  docs/cards.md has the options.
 *  @param options NULL: all defaults.
 *  @return 0; -EINVAL (name, option: the log says which); -E2BIG (options of a newer version);
 *  -EBUSY (in use); -ENODEV (no such card, or gone); -ENOENT (no such queue pair); -EPROTO (no
 *  message card); -EACCES, -EPERM; -ENOMEM; -ETIMEDOUT; -ENOTSUP (interrupts); -EAGAIN (no thread
 *  can be started for the card: ulimit -u); -EMFILE (ulimit -n). */
int rio_open(const char* name, const struct rio_options* options, rio_card** out);
/** Open another queue pair of the same card, for another thread. No reset: of the options only
 *  queue_pair, rings, sizes, stop_timeout_ms and irq_* count.
 *  @return as rio_open(); -EBUSY: the queue pair is open. */
int rio_open_queue_pair(rio_card* card, const struct rio_options* options, rio_card** out);
/** Handle SIGBUS from now on, in the whole process: a card whose BAR has vanished then reads all
 *  ones and is gone, where the access would end the process. Any other SIGBUS goes to the handler
 *  that the program had installed before, or ends the process. Any thread; again: nothing.
 *  @return 0, -errno. */
int rio_catch_bus_errors(void);
/** Stop the rings, free all memory of rio_alloc() and all registrations of this rio_card, and close
 *  the card with its last queue pair. The rio_card is gone afterwards, whatever the result. NULL
 *  does nothing. @return 0; -ENODEV (the card was gone: all is freed); -ETIMEDOUT (the card did not
 *  answer: memory that it may still write stays allocated until the process ends). */
int rio_close(rio_card* card);
/** Stop all rings. Posted entries complete as RIO_FLUSHED and can be reaped. */
int rio_stop(rio_card* card);

/** @param size_bytes sizeof(struct rio_info). */
int rio_get_info(rio_card* card, struct rio_info* out, size_t size_bytes);
/** "emu:loop/0", "0000:03:00.0"; valid until rio_close(). */
const char* rio_name(const rio_card* card);
/** destID of the queue pair: what was asked for, or the card's own, if it has one. */
uint32_t rio_dest_id(const rio_card* card);
/** @return 1: the card is gone (its magic reads all ones), or was given up because the kernel asked
 *  for it; 0: it is not. */
int rio_gone(rio_card* card);
/** Wait until the link is up; both ends of a wire have to, before either sends.
 *  @return 0, -ETIMEDOUT, -ENODEV. */
int rio_wait_link(rio_card* card, uint32_t timeout_ms);

/** Pin the calling thread, which polls, to a CPU that no other poller of the process has.
 *  @param cpus NULL: the nearest to the card; or a list, "2,4-7": the first one free of it. A
 *  warning is logged when two pollers share a core. The CPU is free again when the thread ends.
 *  @return the CPU; -EINVAL (list), -EBUSY (each CPU of the list has a poller). */
int rio_pin(rio_card* card, const char* cpus);

/** Memory for messages, zeroed. rio_close() frees what is left.
 *  @param align_bytes power of two; of both addresses. Neighbouring buffers best lie 4096 + 256
 *  bytes apart, for the cache. @return 0, -EINVAL, -ENOMEM. */
int rio_alloc(rio_card* card, size_t len_bytes, size_t align_bytes, struct rio_memory* out);
/** The card must be done with it. @return 0, -ENOENT (not of rio_alloc), -EBUSY (registered). */
int rio_free(rio_card* card, const struct rio_memory* memory);
/** Make the program's own memory reachable; whole pages of it. It must stay mapped until
 *  rio_unregister(). @return 0, -EINVAL, -ENOTSUP (this bus reaches hugepages only), -ENOMEM. */
int rio_register(rio_card* card, void* va, size_t len_bytes);
/** @param va, len_bytes as registered. @return 0, -ENOENT. */
int rio_unregister(rio_card* card, void* va, size_t len_bytes);
/** Bus address of memory of rio_alloc() or rio_register().
 *  @return 0, -ENOENT (not registered), -EXDEV (not contiguous for the card: use it in parts). */
int rio_iova(rio_card* card, const void* va, size_t len_bytes, uint64_t* iova);

/** Open dedicated queue `i`, 0 to 7: messages of `source` to mailbox `mbox`, 0 to 3, no longer
 *  reach the shared queue. @return 0, -EINVAL, -EBUSY (it is open), -ENOMEM, -ETIMEDOUT, -ENODEV.
 */
int rio_dedicated_open(rio_card* card, uint32_t i, uint32_t source, uint32_t mbox);
/** Entries that were not reaped are the caller's again.
 *  @return 0, -ENOENT (not open), -ETIMEDOUT (it stays open), -ENODEV (gone; closed). */
int rio_dedicated_close(rio_card* card, uint32_t i);

/** @param index for rio_window_close(). @return 0, -EINVAL, -ENOSPC, -ENOTSUP, -ETIMEDOUT. */
int rio_window_open(rio_card* card, const struct rio_window* window, uint32_t* index);
int rio_window_close(rio_card* card, uint32_t index);

/** Maintenance accesses of 1 to 16 words at a multiple of 4, in host order; queue pair 0 only.
 *  @return 0; -EINVAL; -ENOTSUP (no maintenance queue); -ETIMEDOUT; -EIO (ERROR response); -EAGAIN;
 *  -ENETDOWN; -EBUSY; -ECANCELED; -EFAULT; -ENODEV. */
int rio_maint_read(rio_card* card, uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                   uint32_t* words, size_t count, uint32_t timeout_ms);
int rio_maint_write(rio_card* card, uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                    const uint32_t* words, size_t count, uint32_t timeout_ms);
/** The card's own CARs and CSRs. */
int rio_local_read(rio_card* card, uint32_t offset, uint32_t* words, size_t count,
                   uint32_t timeout_ms);
int rio_local_write(rio_card* card, uint32_t offset, const uint32_t* words, size_t count,
                    uint32_t timeout_ms);
/** 0 means that it was sent: port-writes have no response. */
int rio_port_write(rio_card* card, uint32_t dest_id, uint8_t hop_count, const uint32_t* words,
                   size_t count, uint32_t timeout_ms);

/** Write a descriptor into a slot on the card, from where rio_barrier_go() runs it. By the thread
 *  that posts. @param slot below rio_info::barrier_slots. @param cookie comes back each time.
 *  @return 0, -EINVAL, -EBUSY (the slot runs), -ENOENT (the barrier ring is not open). */
int rio_barrier_load(rio_card* card, uint32_t slot, const struct rio_barrier_desc* desc,
                     uint64_t cookie);
/** A free-running counter of the barrier engine: notifications "sent", "received", "early" …
 *  @param i from 0 on. @param name a constant. @return 0, -ENOENT (no more, or no engine). */
int rio_barrier_counter(rio_card* card, uint32_t i, const char** name, uint32_t* value);

/** Let the card keep its status up to date in host memory until rio_rail_close(), or rio_close() of
 *  its last queue pair. @param period_us between two writes, at least 1. @return 0; -EINVAL;
 *  -EBUSY (it does so already); -ENOTSUP (the card has no rails block; a virtual function never
 *  has); -EPROTO, -ENOMEM, -ETIMEDOUT, -ENODEV. */
int rio_rail_open(rio_card* card, uint32_t period_us);
/** No thread is in rio_rail_read() any more. @return 0; -ENOENT (not open); -ETIMEDOUT (the memory
 *  stays allocated); -ENODEV (gone; closed). */
int rio_rail_close(rio_card* card);
/** Read that status: no BAR access, lock, or log. Any thread, also several at once. An emulated
 * card that works inside its program writes only while its queues are polled. @return 0; -ENOENT
 * (not open); -EAGAIN (a write was seen in part, several times in a row); -EPROTO (no status). */
int rio_rail_read(rio_card* card, struct rio_rail_state* out);
/** Check and decode the status of another card, which answers RIO_NREAD of RIO_RAIL_BYTES at
 *  RIO_RAIL_ADDRESS by itself, also while its host is stopped (rio_dma_post). Any thread.
 *  @param done of that request. @param bytes of its memory, RIO_RAIL_BYTES of them.
 *  @return 0; -ENOTSUP (refused: no rails block, or no such destID); -ETIMEDOUT; -ENETDOWN;
 *  -EIO; -EAGAIN, -EPROTO as rio_rail_read(). */
int rio_rail_decode(const struct rio_entry_done* done, const void* bytes,
                    struct rio_rail_state* out);

/** Sleep instead of polling: poll until nothing comes, rio_irq_arm(), poll once more, and if there
 *  still is nothing, poll(2) this descriptor, then rio_irq_ack(). It belongs to the card.
 *  @return descriptor; -ENOENT (options.irq_rings was 0). */
int rio_irq_fd(rio_card* card);
/** @param rings of options.irq_rings; called by the thread that polls them. @return 0, -EINVAL. */
int rio_irq_arm(rio_card* card, uint32_t rings);
/** Take the interrupt that woke the thread. @return 0, also if there was none. */
int rio_irq_ack(rio_card* card);

/** @param ring an open one. @return 0, -ENOENT. */
int rio_get_stats(rio_card* card, uint32_t ring, struct rio_stats* out);
/** @return 1 running, 0 stopped, 2 stopping, 3 stopped by the card with an error (in the log);
 *  -ENOENT (not open), -ENODEV, -EPROTO. */
int rio_ring_state(rio_card* card, uint32_t ring);
/** Why the last burst on the ring stopped early. Hot. @return rio_reject, or -ENOENT. */
int rio_last_reject(rio_card* card, uint32_t ring);
/** Free entries of a ring; at most 65535. Hot. @return -ENOENT (not open, or completions only). */
int rio_free_count(rio_card* card, uint32_t ring);
/** Entries that the card has. Hot. */
int rio_outstanding(rio_card* card, uint32_t ring);

/** @param line without newline; valid during the call. @param level 0 error, 1 warning, 2 info. */
typedef void (*rio_log_fn)(int level, const char* line);
/** Where log lines go from now on, process-wide; NULL: stderr. Must not throw. */
void rio_set_log(rio_log_fn fn);
/** Text for a result, negative or not; never NULL. */
const char* rio_strerror(int result);
const char* rio_status_name(uint8_t status);
const char* rio_reject_name(int reject);
const char* rio_event_name(uint8_t type);

/* ---- Bursts --------------------------------------------------------------------------------- */

/** Send. @return how many were taken; fewer: ring full, or a bad message (rio_last_reject). */
uint16_t rio_tx_burst(rio_card* card, const struct rio_tx_message* messages, uint16_t n);
uint16_t rio_tx_burst_gather(rio_card* card, const struct rio_tx_gather* messages, uint16_t n);
/** Fetch the outcomes of messages, in the order of completion. */
uint16_t rio_tx_reap(rio_card* card, struct rio_tx_done* out, uint16_t n);
/** Give buffers to the shared queue. Fewer: ring full, or a misaligned one. */
uint16_t rio_rx_post(rio_card* card, const struct rio_rx_buffer* buffers, uint16_t n);
/** Fetch messages of the shared queue, in the order in which they became whole. */
uint16_t rio_rx_burst(rio_card* card, struct rio_rx_message* out, uint16_t n);
/** @param i 0 to 7; a queue that is not open takes and gives nothing. */
uint16_t rio_dedicated_post(rio_card* card, uint32_t i, const struct rio_dedicated_entry* entries,
                            uint16_t n);
uint16_t rio_dedicated_reap(rio_card* card, uint32_t i, struct rio_entry_done* out, uint16_t n);
/** Received doorbells, in the order of arrival. rio_tx_burst() sends them. */
uint16_t rio_doorbell_burst(rio_card* card, struct rio_doorbell* out, uint16_t n);
uint16_t rio_dma_post(rio_card* card, const struct rio_dma_request* requests, uint16_t n);
uint16_t rio_dma_reap(rio_card* card, struct rio_entry_done* out, uint16_t n);
uint16_t rio_event_burst(rio_card* card, struct rio_event* out, uint16_t n);
/** Join, load or cancel barriers. A group has one barrier at a time. */
uint16_t rio_barrier_post(rio_card* card, const struct rio_barrier_request* requests, uint16_t n);
/** Run the barrier of a slot: one write of 4 bytes to the card. @return 1, or 0: the slot is not
 *  loaded, or runs (rio_last_reject), or the ring is full. */
uint16_t rio_barrier_go(rio_card* card, uint32_t slot, uint32_t epoch);
uint16_t rio_barrier_reap(rio_card* card, struct rio_barrier_done* out, uint16_t n);

#ifdef __cplusplus
}
#endif

#endif /* RIOPMD_H */
