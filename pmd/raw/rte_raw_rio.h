/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * RapidIO message cards as DPDK raw devices: what the opaque arguments of the rte_rawdev functions
 * are for driver raw_rio. Plain C. The guide is docs/guide/raw_rio.md.
 *
 * A raw device is a card. Its queues are the card's queue pairs; each belongs to one process at a
 * time (rte_rawdev_queue_setup claims it, rte_rawdev_queue_release gives it up) and, while the
 * device is started, each ring of it to one thread at a time. All other functions are control path:
 * any thread, one at a time (the driver takes a lock).
 */
#ifndef RTE_RAW_RIO_H
#define RTE_RAW_RIO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Dedicated receive queues of a queue pair. */
#define RTE_RAW_RIO_DEDICATED 8

/** Rings of a queue pair. */
enum rte_raw_rio_ring {
  RTE_RAW_RIO_TX = 0,         /**< in: rte_raw_rio_tx, out: rte_raw_rio_tx_done */
  RTE_RAW_RIO_SHARED = 1,     /**< in: rte_raw_rio_buffer, out: rte_raw_rio_message */
  RTE_RAW_RIO_DOORBELL = 2,   /**< out: rte_raw_rio_doorbell */
  RTE_RAW_RIO_DMA = 3,        /**< in: rte_raw_rio_dma, out: rte_raw_rio_done */
  RTE_RAW_RIO_BARRIER = 5,    /**< in: rte_raw_rio_barrier, out: rte_raw_rio_barrier_done */
  RTE_RAW_RIO_EVENT = 6,      /**< out: rte_raw_rio_event */
  RTE_RAW_RIO_DEDICATED0 = 8, /**< 8 to 15; in: rte_raw_rio_entry, out: rte_raw_rio_done */
  /* No rings, but slots of the barrier ring, whose thread enqueues here, too. Barriers of slots
   * come out of RTE_RAW_RIO_BARRIER. */
  RTE_RAW_RIO_BARRIER_LOAD = 16, /**< in: rte_raw_rio_barrier_load */
  RTE_RAW_RIO_BARRIER_GO = 17,   /**< in: rte_raw_rio_barrier_go */
};

/**
 * Context of rte_rawdev_enqueue_buffers and rte_rawdev_dequeue_buffers: which ring. NULL is queue
 * pair 0, TX for enqueue and SHARED for dequeue. The buf_addr of each buffer points to the struct
 * that enum rte_raw_rio_ring names; dequeue fills it in. Both return how many were done, or -EINVAL
 * (no such ring), -ENODEV (queue pair not set up here, or device not started). They take fewer than
 * asked where the ring is full, or before one that the card does not take: see attribute
 * "qpN.last_reject".
 */
struct rte_raw_rio_context {
  uint16_t queue_pair; /**< 0 to queue pairs - 1 */
  uint16_t ring;       /**< enum rte_raw_rio_ring */
};

/** Bits of rte_raw_rio_tx::flags. */
#define RTE_RAW_RIO_TX_PRIO_MASK 0x03 /**< priority, 0 to 2 */
#define RTE_RAW_RIO_TX_ORDER 0x04     /**< after all responses to this (destination, mailbox) */
#define RTE_RAW_RIO_TX_INLINE 0x08    /**< `data` is a pointer; copied, free again on return */
#define RTE_RAW_RIO_TX_DOORBELL 0x10  /**< a doorbell; `info` is sent */
#define RTE_RAW_RIO_TX_SSIZE_SHIFT 5  /**< segment size code minus 8; 0 means 256 bytes */

/** A message to send. */
struct rte_raw_rio_tx {
  union {
    uint64_t iova;    /**< bus address of the bytes, aligned as rte_raw_rio_info says */
    const void* data; /**< with INLINE */
    uint64_t info;    /**< with DOORBELL: 16 bits */
  };
  uint64_t cookie;       /**< comes back, any value */
  uint32_t dest_id;      /**< destination */
  uint16_t length_bytes; /**< 1 to 4096; INLINE 1 to inline_bytes */
  uint8_t mbox;          /**< 0 to 3, or 0 to 63 if one segment holds the message */
  uint8_t flags;         /**< RTE_RAW_RIO_TX_* */
};

/** A sent message. */
struct rte_raw_rio_tx_done {
  uint64_t cookie;
  uint32_t time_ticks; /**< card's time of the last response */
  uint8_t status;      /**< enum rte_raw_rio_status */
  uint8_t retries;     /**< RETRY answers, at most 255 are counted */
};

/** How something ended. */
enum rte_raw_rio_status {
  RTE_RAW_RIO_OK = 0,               /**< delivered */
  RTE_RAW_RIO_RETRY_EXPIRED = 1,    /**< refused */
  RTE_RAW_RIO_RESPONSE_TIMEOUT = 2, /**< in doubt */
  RTE_RAW_RIO_ERROR_RESPONSE = 3,   /**< refused */
  RTE_RAW_RIO_BAD_DESCRIPTOR = 4,   /**< never sent */
  RTE_RAW_RIO_HOST_READ_FAILED = 5, /**< never sent whole: bus address not reachable */
  RTE_RAW_RIO_FLUSHED = 6,          /**< never sent, or buffer unused: stopped */
  RTE_RAW_RIO_LINK_DOWN = 7,        /**< never sent */
  RTE_RAW_RIO_RECEIVE_TIMEOUT = 8,  /**< received in part */
  RTE_RAW_RIO_SIZE_MISMATCH = 9,    /**< dedicated entry of another size */
  RTE_RAW_RIO_FORMAT = 10,          /**< received in part: segments contradict each other */
  RTE_RAW_RIO_PEER_FAILED = 11,     /**< barrier: a member failed, or cancelled it */
};

/** A buffer of 4096 bytes for the shared receive queue. The card's until it comes back. */
struct rte_raw_rio_buffer {
  uint64_t iova;   /**< aligned as rte_raw_rio_info says */
  uint64_t cookie; /**< comes back, any value */
};

/** A received message. The buffer is the caller's again. */
struct rte_raw_rio_message {
  uint64_t cookie;
  uint32_t source;       /**< destID of the sender */
  uint32_t dest_id;      /**< own ID that it was sent to */
  uint32_t arrival;      /**< counts messages by their first segment */
  uint32_t time_ticks;   /**< card's time */
  uint16_t length_bytes; /**< landed, padded to a multiple of 8 */
  uint8_t mbox;
  uint8_t letter;
  uint8_t segments;
  uint8_t status; /**< enum rte_raw_rio_status */
};

/** An entry of a dedicated receive queue. The card's until it comes back. */
struct rte_raw_rio_entry {
  uint64_t iova;
  uint64_t cookie;
  uint32_t size_bytes; /**< of the message, up to 4096, aligned as rte_raw_rio_info says */
};

/** A completed dedicated or DMA entry. */
struct rte_raw_rio_done {
  uint64_t cookie;
  uint32_t bytes; /**< landed or moved */
  uint8_t status; /**< enum rte_raw_rio_status */
  uint8_t retries;
};

/** A received doorbell. */
struct rte_raw_rio_doorbell {
  uint32_t source;
  uint32_t dest_id;
  uint32_t time_ticks;
  uint16_t info;
};

/** A remote read, write or atomic. */
struct rte_raw_rio_dma {
  uint64_t rio_addr; /**< RapidIO address; key in the top 16 bits */
  uint64_t iova;     /**< local bytes */
  uint64_t cookie;
  uint32_t dest_id;
  uint32_t length_bytes;
  uint8_t op;   /**< 0 NREAD, 1 NWRITE, 2 NWRITE_R, 3 SWRITE, 4… atomics: docs/registers.md */
  uint8_t prio; /**< 0 to 2 */
};

/** The notifications that a member of a group sends and awaits; docs/card.md, Barriers. Peer w of
 * round r has number 2r + w. */
struct rte_raw_rio_barrier_desc {
  uint32_t control;   /**< 0 run, 1 load, 2 cancel; rounds << 4; priority << 9 */
  uint32_t group;     /**< 0 to 127 */
  uint32_t unused[2]; /**< any values: the driver writes epoch and cookie here */
  uint32_t peers[40]; /**< destIDs; 0xFFFFFFFF: none */
  uint64_t send;      /**< bit 2r + w */
  uint64_t await;     /**< bit 2r + w */
  uint32_t reserved[16];
};

/** A barrier to post. The descriptor is copied. */
struct rte_raw_rio_barrier {
  const struct rte_raw_rio_barrier_desc* desc;
  uint64_t cookie; /**< comes back, any value */
  uint32_t epoch;  /**< number of the barrier in its group: the next one each time */
};

/** A descriptor to load into a slot on the card, once for many barriers; nothing is sent. Not for
 * the hot path. Refused, with a log line: a slot that the card does not have, or that runs; a
 * descriptor that it cannot take. */
struct rte_raw_rio_barrier_load {
  const struct rte_raw_rio_barrier_desc* desc;
  uint64_t cookie; /**< comes back with each barrier of the slot, any value */
  uint32_t slot;   /**< 0 to rte_raw_rio_info::barrier_slots - 1 */
};

/** Start the barrier of a slot: one BAR write of 4 bytes. Not taken while the slot runs, or before
 * it was loaded. */
struct rte_raw_rio_barrier_go {
  uint32_t slot;  /**< 0 to rte_raw_rio_info::barrier_slots - 1 */
  uint32_t epoch; /**< number of the barrier in its group: the next one each time */
};

/** A barrier that has ended, well or not. */
struct rte_raw_rio_barrier_done {
  uint64_t cookie;
  uint32_t epoch;
  uint16_t resent; /**< notifications sent again, at most 65535 are counted */
  uint8_t slot;    /**< the one that ran it; 0xFF: it was posted */
  uint8_t status;  /**< enum rte_raw_rio_status; OK: all members have arrived */
  uint8_t round;   /**< where it ended, unless OK */
  uint8_t peer;    /**< which of the round's two peers, 0 or 1 */
  uint8_t retries; /**< RETRY answers, at most 255 are counted */
};

/** An event of the card. */
struct rte_raw_rio_event {
  /** 1 port-write, 2 link, 3 ring error, 4 overflow, 5 window violation, 6 partner, 7 barrier
   * notification that is not awaited */
  uint8_t type;
  uint32_t source;
  uint32_t info;
  uint32_t data[4];
};

/** dev_private of rte_rawdev_info_get. */
struct rte_raw_rio_info {
  uint32_t queue_pairs;
  uint32_t ring_log2_min; /**< sizes of rings, log2 of entries */
  uint32_t ring_log2_max;
  uint32_t vectors; /**< interrupt vectors */
  uint32_t inline_bytes;
  uint32_t tx_addr_align; /**< alignments in bytes */
  uint32_t shared_addr_align;
  uint32_t dedicated_addr_align;
  uint32_t dedicated_size_align;
  uint32_t dma_addr_align;
  uint32_t dma_bytes;    /**< longest DMA request */
  uint32_t tick_ns;      /**< unit of time_ticks */
  uint32_t base_dest_id; /**< of queue pair 0; queue pair i has this + i */
  uint8_t emulated;      /**< 1: no card, its figures are not a card's */
  uint8_t link_up;
  uint8_t lanes;
  uint8_t reserved;
  uint32_t lane_mbaud;
  uint32_t barrier_rounds; /**< most rounds of a barrier; 0: the card has no barrier engine */
  uint32_t barrier_slots;  /**< of each queue pair that has a barrier ring */
};

/** dev_private of rte_rawdev_configure. The card is reset; no other process may own a queue pair. 0
 * of a time keeps the present value. */
struct rte_raw_rio_config {
  uint32_t base_dest_id;        /**< of queue pair 0; queue pair i has this + i */
  uint32_t response_timeout_us; /**< 1 to 10,000,000 */
  uint32_t receive_timeout_us;  /**< 1 to twice response_timeout_us; 0: lowered to that if above */
  uint32_t retry_limit;         /**< RETRY answers before a message is given up; 0 never */
  uint32_t retry_delay_us;      /**< 1 to 1,000,000 */
};

/** A dedicated receive queue to open with the queue pair. */
struct rte_raw_rio_dedicated_conf {
  uint32_t source; /**< destID of the sender */
  uint8_t mbox;    /**< 0 to 3 */
  uint8_t open;    /**< 0: leave it closed */
};

/** queue_conf of rte_rawdev_queue_setup; rte_rawdev_queue_conf_get gives the default, or what was
 * set up. Sizes are log2 of entries, within rte_raw_rio_info's limits. NULL means the default. */
struct rte_raw_rio_queue_conf {
  uint8_t tx_log2;
  uint8_t shared_log2;
  uint8_t dedicated_log2;
  uint8_t doorbell_log2;
  uint8_t dma_log2;
  uint8_t event_log2;
  uint16_t irq_moderation_us; /**< at most one interrupt a ring in this time, 0 to 65535 */
  /** Bits, 1 << enum rte_raw_rio_ring, of the rings that "qpN.irq_fd" tells about; 0: none. With
   * others rte_rawdev_start fails: -EINVAL (no such ring), -ENOTSUP (no interrupts here). */
  uint32_t irq_rings;
  struct rte_raw_rio_dedicated_conf dedicated[RTE_RAW_RIO_DEDICATED];
  /** log2 of the barrier ring's entries; 0: no barrier ring. With one, the card treats doorbells
   * whose information has bit 15 as notifications of barriers; rte_rawdev_start fails with -ENOTSUP
   * if the card has no barrier engine. */
  uint8_t barrier_log2;
};

#ifdef __cplusplus
}
#endif

#endif /* RTE_RAW_RIO_H */
