/**
 * @file
 * SkifCh: a minimal message interface [S4]. One Send is one Recv; order is kept per sender; Send
 * never waits; Recv shows messages where they lie.
 *
 * Thread rule: a channel belongs to one thread at a time. Channels on one queue pair of a card,
 * with the same dest_id, share it; they all belong to the thread that opened them, or, with
 * SkifCh_Options::threads, each to a thread of its own.
 * Functions that fail return -1, or NULL, and set errno.
 */
#ifndef RIO_SKIFCH_H
#define RIO_SKIFCH_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): names are [S4]'s, and others in their manner */

/** Where a channel is: destID of its card in the upper 24 bits, number of the channel in the lower
 * 8. */
typedef uint32_t netaddr_t;

/** Pieces that Recv may give. */
#define SKIFCH_CONT_SIZE 2
/** Pieces that Send may be given. */
#define SKIFCH_PIECES_MAX 64
/** The longest message; Send takes no more at once. */
#define SKIFCH_MESSAGE_MAX 4080
/** Numbers of channels are below. */
#define SKIFCH_CHANNELS 64

/** A channel. */
struct SkifCh;

/** The address of channel `number` on the card with that destID. */
static inline netaddr_t SkifCh_Addr(uint32_t dest_id, uint32_t number) {
  return dest_id << 8 | number;
}

/** How a channel is made; zero means the default. Channels that share a card have the options
 *  of the first: later ones say 0, or the same, and all of them the same `threads`. */
struct SkifCh_Options {
  uint32_t dest_id;    /**< of the card; 0: the one that it has */
  uint32_t queue_pair; /**< of the card */
  uint32_t buffers;    /**< bound of what waits to be received, in messages; 64 to 16384 (3840) */
  uint32_t share;      /**< of them, for one sender and channel; 4 to 1024 (256) */
  uint32_t connect_ms; /**< how long Send tries to reach a peer that does not answer (10000) */
  uint32_t threads;    /**< 1: channels that share a card belong to several threads; costs a lock */
  uint32_t sleeps;     /**< 1: SkifCh_Wait sleeps; needs "shm:", or a card with interrupts */
};

/**
 * Open a channel on a card.
 * @param card as rio_open() takes it: "shm:job", "0000:03:00.0". @param number below
 * SKIFCH_CHANNELS; peers send to it. @param options may be NULL.
 * @return NULL: EINVAL (name, number, options, also those that an open card does not have), EBUSY
 * (the number is taken on this card), ENODEV, ENOMEM, or what rio_open() says. The log has the
 * reason.
 */
struct SkifCh* SkifCh_Open(const char* card, uint32_t number, const struct SkifCh_Options* options);
/** Close it. Messages not yet delivered are waited for, for up to a second; messages that have
 * arrived and were not taken are lost. NULL is allowed. */
void SkifCh_Close(struct SkifCh* channel);
/** Own address. */
netaddr_t SkifCh_Self(const struct SkifCh* channel);

/**
 * Send one message, gathered from pieces. Nothing of them is needed any more when this returns.
 * The first message to a peer finds it, so EAGAIN is likely then.
 * @return bytes that were sent: all of them, or the first SKIFCH_MESSAGE_MAX. -1: EAGAIN (no room
 * now, or the peer has not answered yet: try again), ECONNRESET (the peer has gone, or was born
 * again; messages may be lost; the next call begins anew), ECONNREFUSED (it has no such channel),
 * EHOSTUNREACH (it does not answer), ETIMEDOUT (it was stopped for too long), EPROTO (it broke the
 * rules), EINVAL (address, pieces), ENODEV (the card is gone).
 */
ssize_t SkifCh_Send(struct SkifCh*, netaddr_t dst, const struct iovec* iov, int iov_count);
/**
 * Look at the next message. Each call gives the next one; it stays until SkifCh_RecvComp().
 * @param cont gets the pieces, `*cont_count` of them, in receive memory of the library.
 * @return bytes of the message, which may be 0. -1: EAGAIN (there is none), ENODEV.
 */
ssize_t SkifCh_Recv(struct SkifCh*, struct iovec cont[SKIFCH_CONT_SIZE], int* cont_count);
/** The oldest message that Recv gave is done with. @return 0; -1: EINVAL (there is none). */
int SkifCh_RecvComp(struct SkifCh*);
/**
 * Let the library work: take what has arrived, answer peers. Send and Recv do so when they have to
 * wait for something; a program that does neither for long calls this. @return 0; -1: ENODEV.
 */
int SkifCh_Progress(struct SkifCh* channel);
/**
 * Wait until Recv has a message, Send, which had no room, is worth another try, or a peer has gone.
 * Without SkifCh_Options::sleeps it polls; Send is worth a try at once then.
 * @return 1: try; 0: not within timeout_ms; -1: ENODEV.
 */
int SkifCh_Wait(struct SkifCh* channel, uint32_t timeout_ms);
/**
 * The next card that has gone: its session with this one has ended. Each is told once to each
 * channel that was open then. A channel that only receives hears of it here: messages that had come
 * are there for Recv, and no more come of those sent before. Makes no progress: call it after Recv
 * said EAGAIN.
 * @return 1: *dest_id is of the card, and *error why, as errno of Send; 0: there is none.
 */
int SkifCh_NextGone(struct SkifCh* channel, uint32_t* dest_id, int* error);
/** The sender of the message that Recv gave last. Ask before its SkifCh_RecvComp(). */
netaddr_t SkifCh_Source(const struct SkifCh* channel);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
