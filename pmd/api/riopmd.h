/**
 * @file
 * The driver for C programs: open a card, send and receive, without EAL. docs/embedding.md has a
 * complete program. C11; link with `pkg-config --libs riopmd`.
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

#include <riopmd_types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open queue pair of a card. */
typedef struct rio_card rio_card;

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
