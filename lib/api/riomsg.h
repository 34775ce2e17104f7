/**
 * @file
 * Messages between processes, for C programs: contexts and tagged messages over a RapidIO message
 * card, or over an emulated one. docs/messages.md has complete programs; riomsg.hpp is the same for
 * C++, skifch.h the smaller interface of [S4]. C11; link with `pkg-config --libs riomsg`.
 *
 * Objects. A port is a queue pair of a card. It has up to RIO_MSG_CONTEXTS places, each for a
 * context (messages in the order of each sender, short ones shown where they lie) or for an
 * endpoint of tagged messages (matched as MPI does). Peers name such a place by its address.
 *
 * Threads. Nothing happens but in the calls; no function starts a thread. A port, its contexts and
 * its endpoints belong to one thread at a time; with rio_msg_options::threads each context and each
 * endpoint does, and rio_msg_*() of the port are for any thread. Several threads that share one
 * context take turns by a lock of their own. Opening and closing: one thread at a time. A thread
 * that is cancelled (pthread_cancel) in a wait ends there, in any other call after it; the port
 * goes on for others.
 *
 * Results. Functions give 0 (or what they say) or a negative errno: rio_strerror() of riopmd.h has
 * the text. Outputs are set on success only. The fault of a call, and the remedy, is in the
 * log (rio_set_log() of riopmd.h; stderr by default); what a peer did is not, since a program may
 * expect it. Errors that any call about a peer may give: -ECONNRESET (it has gone, or was started
 * anew: what was sent to it may be lost; the next call begins a new session), -ECONNREFUSED (it has
 * no such context), -EHOSTUNREACH (it does not answer), -ETIMEDOUT (it was stopped for too long),
 * -EPROTO (it broke the rules), -ENODEV (the own card is gone, or was reset: close).
 *
 * Losses. A send that is done is on its way, not there: where its session ends, it may be
 * lost, and so may all that this context or endpoint has sent to that peer's before it was told of
 * an error, by the status of a request or by the next send, which is refused. Messages sent after
 * that arrives, or an error is told once more. After -ENODEV requests under way end with it, large
 * data too, and their memory is the caller's.
 */
#ifndef RIOMSG_H
#define RIOMSG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIO_MSG_API_VERSION 4u /**< grows with each addition; see rio_msg_api_version() */
#define RIO_MSG_CONTEXTS 64u   /**< of a port: numbers are below */
#define RIO_MSG_BYTES 4080u    /**< of the longest short message of a context */
#define RIO_MSG_PIECES 64u     /**< of a gathered message */
#define RIO_MSG_LONG_BYTES (UINT64_C(1) << 39) /**< of the longest message of a context */
#define RIO_TAG_BYTES (UINT64_C(1) << 39)      /**< of the longest tagged message */
#define RIO_TAG_ANY 0xFFFFFFFFu                /**< any source */
#define RIO_BARRIER_NO_RANK 0xFFFFFFFFu        /**< a member that is not known */

typedef struct rio_msg_port rio_msg_port;           /**< a queue pair of a card */
typedef struct rio_msg_context rio_msg_context;     /**< a user of it */
typedef struct rio_tag rio_tag;                     /**< an endpoint of tagged messages */
typedef struct rio_barrier rio_barrier;             /**< a context for barriers */
typedef struct rio_barrier_group rio_barrier_group; /**< a member's part of a group */
/** A send or a take under way: the library's, valid until its rio_msg_done was given. */
typedef struct rio_msg_request rio_msg_request;
/** A send or a receive under way: the library's, valid until its rio_tag_done was given. */
typedef struct rio_tag_request rio_tag_request;
/** A message that a matched probe took: valid until rio_tag_receive_claimed(). */
typedef struct rio_tag_message rio_tag_message;

/** Where a context or an endpoint is: destID of its card in the upper 24 bits, number in the lower
 *  8. */
typedef uint32_t rio_msg_address;
static inline rio_msg_address rio_msg_address_of(uint32_t dest_id, uint32_t number) {
  return dest_id << 8 | number;
}

/** How a port is opened. Zero means the default, everywhere; set size_bytes:
 *  `struct rio_msg_options options = {.size_bytes = sizeof options};` */
struct rio_msg_options {
  uint32_t size_bytes;          /**< sizeof(struct rio_msg_options): tells old programs from new */
  uint32_t queue_pair;          /**< of the card */
  uint32_t dest_id;             /**< of the card; default: the one that it has */
  uint32_t buffers;             /**< bound of what waits unasked for, in messages; 64 to 16384
                                     (3840) */
  uint32_t share;               /**< of them, for one sender and context; 4 to 1024 (256) */
  uint32_t connect_ms;          /**< how long a peer that does not answer is asked (10000) */
  uint32_t deliver_ms;          /**< how long what does not arrive is sent again (60000);
                                     a time without calls of the port counts as 100 ms at most */
  uint32_t response_timeout_us; /**< of the card, until a message is in doubt; to 60 s (100000) */
  uint32_t threads;             /**< 1: each context and endpoint belongs to a thread of its own */
  uint32_t sleeps;              /**< 1: waits sleep; needs "shm:", or a card with interrupts */
};

/** Counts of a port since it was opened. */
struct rio_msg_stats {
  uint64_t received;  /**< messages, of the library's own too */
  uint64_t again;     /**< sent once more */
  uint64_t early;     /**< arrived before one with a lower number */
  uint64_t twice;     /**< arrived once more */
  uint64_t bad;       /**< of no session, no context, or no sense: dropped */
  uint64_t cut_off;   /**< sessions ended because the peer broke a rule */
  uint64_t copied;    /**< bytes copied by the library */
  uint64_t placed;    /**< bytes of large data that the card moved from or to where they are */
  uint64_t overslept; /**< sleeps of a second that the clock ended though something had come: 0 */
  uint64_t restarts; /**< of the card's transmit ring, which peers that did not answer had filled */
  uint64_t rests;    /**< times that such a peer was left alone for a while */
};

/** The end of a session. */
struct rio_msg_peer_event {
  uint32_t dest_id;
  int32_t error; /**< -errno: why */
};

/** Counts of one rail of a port, a card, since the port was opened. Messages and bytes are what the
 *  card's queues have counted, with those of the library and with headers. */
struct rio_msg_rail_stats {
  uint64_t sent; /**< messages delivered */
  uint64_t sent_bytes;
  uint64_t received;
  uint64_t received_bytes;
  uint64_t remote; /**< remote reads, writes and atomic operations that have succeeded */
  uint64_t remote_bytes;
  uint64_t failed;   /**< messages and remote operations not delivered, or in doubt */
  uint64_t again;    /**< messages sent once more by this rail */
  uint64_t moves;    /**< times that the messages to a peer left this rail for another */
  uint64_t downs;    /**< times that a peer was no longer reached by this rail */
  uint64_t paths;    /**< peers with a session that this rail has reached */
  uint64_t paths_up; /**< of these, peers that it reaches now */
  uint64_t gone;     /**< 1: the card is gone, was reset, or has failed */
};

/** Why a peer is not reached by a rail. */
enum rio_msg_rail_reason {
  RIO_MSG_RAIL_NO_ANSWER = 1, /**< the peer did not answer */
  RIO_MSG_RAIL_LINK_DOWN = 2, /**< the link of this card is down */
  RIO_MSG_RAIL_CARD_GONE = 3, /**< this card is gone, or was reset */
  RIO_MSG_RAIL_PEER_GONE = 4  /**< the peer has left the network of this rail */
};

/** A peer is no longer reached by a rail, or is reached again. */
struct rio_msg_rail_event {
  uint32_t rail;    /**< number of the rail */
  uint32_t dest_id; /**< of the peer, on the first rail */
  uint32_t is_up;   /**< 1: it is reached again; 0: it is not reached */
  uint32_t reason;  /**< enum rio_msg_rail_reason: why it went down, also if it is back */
  uint64_t time_ns; /**< when the library noticed, by CLOCK_MONOTONIC */
};

/** A message where it lies. The bytes are the receiver's until rio_msg_release(). */
struct rio_msg_message {
  const void* data;  /**< NULL: it is long, and its bytes are for rio_msg_take() */
  size_t size_bytes; /**< may be 0 */
  rio_msg_address source;
  uint32_t reserved;
  uint64_t internal[2];
};

/** The outcome of a rio_msg_send_any() or a rio_msg_take(); its memory is the caller's again. */
struct rio_msg_done {
  void* user;               /**< as given with it */
  rio_msg_request* request; /**< which; no longer valid. NULL: it was done at once */
  int32_t status;           /**< 0; -EMSGSIZE (take: longer than the buffer, which is full),
                                 -ECANCELED, -ECONNREFUSED (send: it was not wanted), or an error of
                                 the peer */
  uint32_t is_take;         /**< 1: of rio_msg_take(); 0: of rio_msg_send_any() */
  uint64_t size_bytes;      /**< of the message, also where the buffer was smaller */
  rio_msg_address peer;     /**< where it went, or came from */
  uint32_t reserved;
};

/** The messages that a receive or a probe wants. */
struct rio_tag_pattern {
  uint64_t bits;
  uint64_t ignore;        /**< bits that do not matter */
  rio_msg_address source; /**< or RIO_TAG_ANY */
  uint32_t reserved;      /**< 0 */
};

/** The result of a probe. */
struct rio_tag_info {
  uint64_t bits;
  uint64_t size_bytes;
  rio_msg_address source;
  uint32_t reserved;
};

/** The outcome of a send or a receive; its memory is the caller's again. */
struct rio_tag_done {
  void* user;               /**< as given with it */
  rio_tag_request* request; /**< which; no longer valid. NULL: it was done at once */
  int32_t status;         /**< 0; -EMSGSIZE (longer than the buffer, which is full), -ECANCELED, or
                               an error of the peer */
  uint32_t is_receive;    /**< the members below are set for receives only */
  uint64_t bits;          /**< of the message */
  uint64_t size_bytes;    /**< of the message, also where the buffer was smaller */
  rio_msg_address source; /**< of the message */
  uint32_t reserved;
};

/** How the members of a group meet. */
enum rio_barrier_way {
  RIO_BARRIER_ANY = 0,  /**< memory, if all members are on one machine; else the card, if all
                             members' cards can and have a number for it; else software */
  RIO_BARRIER_CARD = 1, /**< the card's barrier engine: nothing needs the members' calls */
  RIO_BARRIER_SOFTWARE =
      2,                 /**< messages: each member has to call the library until it has passed */
  RIO_BARRIER_MEMORY = 3 /**< memory that processes of one user share: needs no calls */
};

/** The terms of a group. All members give the same ones, but for create_ms and deadline_ms. Zero
 *  means the default; set size_bytes. */
struct rio_barrier_options {
  uint32_t size_bytes;  /**< sizeof(struct rio_barrier_options) */
  uint32_t way;         /**< enum rio_barrier_way */
  uint64_t key;         /**< tells apart groups that have a member in common; free again at a member
                             that has destroyed the group */
  const char* schedule; /**< "classic", "two-way", "dimensions:8x4x4", "torus:8x4x4", "mesh:8x4",
                             "tree"; NULL: "two-way" */
  uint32_t create_ms;   /**< how long the members wait for each other; to an hour (10000) */
  uint32_t deadline_ms; /**< a barrier that takes longer after this member's arrival fails, and the
                             group with it; default: none. Checked in this member's calls */
};

/** Why a group has failed. */
struct rio_barrier_failure {
  int32_t error; /**< 0: it has not. -ECONNREFUSED: the member has left; -ETIME: its deadline has
                      passed; -EINVAL: it gave other members or terms; -ETIMEDOUT while creating:
                      it has not joined; other errors: it has gone, or does not answer */
  uint32_t rank; /**< the member that was the cause, or RIO_BARRIER_NO_RANK */
};

/* ---- Ports ---------------------------------------------------------------------------------- */

/** Of the library that was loaded; additions keep old programs working. */
uint32_t rio_msg_api_version(void);

/** Open a card's queue pair for messages.
 *  @param card as rio_open() takes it: "shm:job", "shm:job,id=3", "emu:loop", "0000:03:00.0".
 *  @param options NULL: all defaults.
 *  @return 0; -EINVAL (name, options: the log says which), -E2BIG (options of a newer version),
 *  -EBUSY, -ENODEV, -ENOENT, -ENOMEM, -ENOTSUP (no interrupts to sleep by), -EAGAIN (no thread),
 *  -EMFILE, as rio_open(). */
int rio_msg_open(const char* card, const struct rio_msg_options* options, rio_msg_port** out);
/** Close a port. Messages that have not arrived yet are waited for, up to a second. NULL does
 * nothing.
 *  @return 0; -EBUSY: contexts or endpoints are open, and so is the port still. */
int rio_msg_close(rio_msg_port* port);
/** destID of the card, which peers send to. */
uint32_t rio_msg_dest_id(const rio_msg_port* port);
/** Let the library work: take what has arrived, answer peers. All calls that have to wait for
 *  something do so, too; a program that does nothing else for long calls this.
 *  @return messages taken, of the library's own too; -ENODEV. */
int rio_msg_progress(rio_msg_port* port);
/** Make progress until what was sent has arrived, or failed. @return 0, -ETIMEDOUT, -ENODEV. */
int rio_msg_flush(rio_msg_port* port, uint32_t timeout_ms);
/** The next session that ended since the last call, or since the port was opened; of several of one
 *  peer the last. @return 1: *out is set; 0: there is none. */
int rio_msg_next_peer_event(rio_msg_port* port, struct rio_msg_peer_event* out);
/** @return 1: there is a session with this peer; 0: there is none (yet). */
int rio_msg_peer_up(rio_msg_port* port, uint32_t dest_id);
/** @param size_bytes sizeof(struct rio_msg_stats). @return 0, -EINVAL. */
int rio_msg_get_stats(rio_msg_port* port, struct rio_msg_stats* out, size_t size_bytes);

/* Rails: the cards of a port whose name has several, numbered from 0 in the order of the name. */

/** @return the name of a rail's card, valid until rio_msg_close(); NULL: there is no such rail. */
const char* rio_msg_rail_name(const rio_msg_port* port, uint32_t rail);
/** @param size_bytes sizeof(struct rio_msg_rail_stats). @return 0, -EINVAL, -ENOENT (no such rail).
 */
int rio_msg_get_rail_stats(rio_msg_port* port, uint32_t rail, struct rio_msg_rail_stats* out,
                           size_t size_bytes);
/** Hot. The next event of a rail since the last call, or since the port was opened; of several of
 *  one rail and peer the last. A program that does not call this pays nothing. Makes no progress,
 *  and no wait ends for such an event. @return 1: *out is set; 0: there is none; -ENOMEM. */
int rio_msg_next_rail_event(rio_msg_port* port, struct rio_msg_rail_event* out);

/** For an event loop: a descriptor that becomes readable when the card has something; the port's.
 *  Take all there is, rio_msg_arm(), and if that says 0 poll(2) the descriptor. Not with
 *  options.threads: use the waits. @return descriptor; -ENOTSUP (options). */
int rio_msg_fd(rio_msg_port* port);
/** Ask for a wake-up. @param timeout_ms gets how long the sleep may be: the library has things to
 *  do then. @return 0: sleep; 1: something has come since the last call, look at it first; -ENODEV,
 * -ENOTSUP.
 */
int rio_msg_arm(rio_msg_port* port, uint32_t* timeout_ms);

/* ---- Contexts ------------------------------------------------------------------------------- */

/** Open a context. Peers that were refused by an earlier one of this number are told first, which
 *  takes up to the port's deliver_ms if one accepts nothing.
 *  @param number below RIO_MSG_CONTEXTS. @return 0, -EINVAL (number), -EBUSY (the port has such a
 *  context or endpoint, or a peer could not be told), -ENOMEM. */
int rio_msg_context_open(rio_msg_port* port, uint32_t number, rio_msg_context** out);
/** Close a context. Messages that have arrived and were not received are lost; peers are told.
 *  Requests under way end, without an outcome. Large data is waited for, for up to a second; if it
 * has not ended by then, the log says so: close the port before its memory is used. NULL does
 * nothing.
 *  @return 0; -EBUSY: messages are neither released nor taken, and the context is open still. */
int rio_msg_context_close(rio_msg_context* context);
rio_msg_address rio_msg_self(const rio_msg_context* context);

/** Hot. Send one message; its bytes are copied. To one context they arrive in order, once. The
 *  first to a peer finds it, so -EAGAIN is likely then.
 *  @param size_bytes 0 to RIO_MSG_BYTES. @return 0; -EAGAIN (no room now, or the peer has not
 *  answered yet: rio_msg_wait() and try again), -EMSGSIZE, -EINVAL (address, NULL), -ENOMEM, or an
 *  error of the peer, which is told once. */
int rio_msg_send(rio_msg_context* context, rio_msg_address to, const void* data, size_t size_bytes);
/** Send as rio_msg_send() does, gathered. @param count 0 to RIO_MSG_PIECES. */
int rio_msg_sendv(rio_msg_context* context, rio_msg_address to, const struct iovec* pieces,
                  int count);
/** Hot. The next message, where it lies; those of one sender come in their order.
 *  @return 1: *out is set, to be released, in any order; 0: there is none; -ENODEV. */
int rio_msg_receive(rio_msg_context* context, struct rio_msg_message* out);
/** Hot. Give a message back; a long one that was not taken is refused. A program that holds many
 *  stops their senders. @param message as rio_msg_receive() gave it; once, and not after another
 * receive into it. */
void rio_msg_release(rio_msg_context* context, const struct rio_msg_message* message);
/** Wait until a message can be received, something that was begun is done, a send that got -EAGAIN
 *  is worth another try, or a peer has gone. Sleeps with options.sleeps, polls otherwise.
 *  @return 1: look; 0: not within the time; -ENODEV. */
int rio_msg_wait(rio_msg_context* context, uint32_t timeout_ms);

/* Messages of any size. The receiver sees of a long one who sent it and how long it is, in the
 * order of that sender's messages, and then names a buffer or refuses: nothing is moved before.
 * Functions that begin something return 1: it is done already, and *done (unless NULL) says how; 0:
 * it is under way, *request (unless NULL) names it, and its rio_msg_done comes once, by
 * rio_msg_next_done() or rio_msg_wait_done(); or -errno: nothing has happened. A request under way
 * moves in the calls of its context. */

/** From now on rio_msg_receive() gives long messages too, of up to so many bytes. At first, and
 * with 0, none: they are refused, as longer ones are. @return 0, -ENOMEM. */
int rio_msg_accept_long(rio_msg_context* context, uint64_t size_bytes_max);
/** Send a message of any size. To one context nothing overtakes: while this is under way
 *  rio_msg_send() there may have to wait (-EAGAIN). @param data stays as it is until the send is
 *  done. That it is done says that its memory is free, for long data also that the receiver has
 *  taken it. @param size_bytes 0 to RIO_MSG_LONG_BYTES. @param user comes back in rio_msg_done.
 *  @return as above; -EINVAL (address, size, NULL), -ENOMEM, or an error of the peer. */
int rio_msg_send_any(rio_msg_context* context, rio_msg_address to, const void* data,
                     uint64_t size_bytes, void* user, rio_msg_request** request,
                     struct rio_msg_done* done);
/** Have a message in memory of one's own, instead of rio_msg_release(); a short one is copied.
 *  @param message of rio_msg_receive(), used up. @param buffer the library's until this is done;
 *  NULL where capacity_bytes is 0. Bytes beyond capacity_bytes are left out, and the status is
 *  -EMSGSIZE. @return as above; -EINVAL (buffer), -ENOMEM: the message is still to be taken. */
int rio_msg_take(rio_msg_context* context, const struct rio_msg_message* message, void* buffer,
                 uint64_t capacity_bytes, void* user, rio_msg_request** request,
                 struct rio_msg_done* done);
/** Give up. @return 0: it will be done, with -ECANCELED, when nothing can land in its buffer or be
 *  read any more (or with 0, if it was quicker); -EALREADY: too late, it ends by itself; -ENOENT:
 *  it is done. */
int rio_msg_cancel(rio_msg_context* context, rio_msg_request* request);
/** Something that is done, the earliest first; makes no progress of the port. @return 1, 0. */
int rio_msg_next_done(rio_msg_context* context, struct rio_msg_done* done);
/** Wait for this one; with timeout_ms 0: whether it is done. Sleeps with options.sleeps, polls
 *  otherwise. @return 1: it is done, and not valid any more; 0: not within the time; -ENODEV. */
int rio_msg_wait_done(rio_msg_context* context, rio_msg_request* request, uint32_t timeout_ms,
                      struct rio_msg_done* done);

/* ---- Tagged messages ------------------------------------------------------------------------ */

/* Functions that begin something return 1: it is done already, and *done (unless NULL) says how;
 * 0: it is under way, *request (unless NULL) names it, and its rio_tag_done comes once, by
 * rio_tag_next_done(), rio_tag_test() or rio_tag_wait(); or -errno: nothing has happened. */

/** @param number below RIO_MSG_CONTEXTS: the endpoint's place in the port. @return 0, -EINVAL,
 *  -EBUSY, -ENOMEM. */
int rio_tag_open(rio_msg_port* port, uint32_t number, rio_tag** out);
/** Close an endpoint. Requests under way end, without an outcome. Large data is waited for, for up
 * to a second; if it has not ended by then, the log says so: close the port before its memory is
 * used. Messages that have arrived and were not received are lost. NULL does nothing. */
void rio_tag_close(rio_tag* tag);
rio_msg_address rio_tag_self(const rio_tag* tag);

/** Hot. Send. Nothing overtakes on the way to one endpoint. @param data stays as it is until the
 *  send is done. @param size_bytes 0 to RIO_TAG_BYTES. @param user comes back in rio_tag_done.
 *  @return as above; -EINVAL (address, size, NULL), -ENOMEM, or an error of the peer. */
int rio_tag_send(rio_tag* tag, rio_msg_address to, uint64_t bits, const void* data,
                 uint64_t size_bytes, void* user, rio_tag_request** request,
                 struct rio_tag_done* done);
/** Send as rio_tag_send() does, but the send is done only when the message was matched: MPI's
 * Ssend. */
int rio_tag_send_sync(rio_tag* tag, rio_msg_address to, uint64_t bits, const void* data,
                      uint64_t size_bytes, void* user, rio_tag_request** request,
                      struct rio_tag_done* done);
/** Hot. Receive: the earliest message that matches, in the order that MPI demands. @param buffer
 *  the library's until the receive is done. @return as above; -EINVAL (NULL), -ENOMEM. */
int rio_tag_receive(rio_tag* tag, const struct rio_tag_pattern* pattern, void* buffer,
                    uint64_t capacity_bytes, void* user, rio_tag_request** request,
                    struct rio_tag_done* done);

/** Whether a receive of this pattern would take a message now. Makes progress.
 *  @return 1: *info is set; 0: there is none. */
int rio_tag_probe(rio_tag* tag, const struct rio_tag_pattern* pattern, struct rio_tag_info* info);
/** Matched probe: the same, and the message is only for rio_tag_receive_claimed(). */
int rio_tag_claim(rio_tag* tag, const struct rio_tag_pattern* pattern, struct rio_tag_info* info,
                  rio_tag_message** message);
/** @param message of rio_tag_claim(), used up unless it fails. @return as above; -EINVAL (NULL),
 *  -ENOENT: it is not claimed. */
int rio_tag_receive_claimed(rio_tag* tag, rio_tag_message* message, void* buffer,
                            uint64_t capacity_bytes, void* user, rio_tag_request** request,
                            struct rio_tag_done* done);

/** Give up. @return 0: it will be done, with -ECANCELED, when nothing can land in its buffer or be
 *  read any more (or with 0, if it was quicker); -EALREADY: too late, it ends by itself; -ENOENT:
 *  it is done. */
int rio_tag_cancel(rio_tag* tag, rio_tag_request* request);

/** Hot. Let the library work. @return 0, -ENODEV. */
int rio_tag_progress(rio_tag* tag);
/** Hot. Something that is done, the earliest first; makes no progress. @return 1, 0. */
int rio_tag_next_done(rio_tag* tag, struct rio_tag_done* done);
/** Hot. Whether this one is done; makes no progress. @return 1: it is, and not valid any more; 0.
 */
int rio_tag_test(rio_tag* tag, rio_tag_request* request, struct rio_tag_done* done);
/** Wait for this one. Sleeps with options.sleeps, polls otherwise. @return 1: it is done; 0: not
 *  within the time; -ENODEV (it will be done, with that status). */
int rio_tag_wait(rio_tag* tag, rio_tag_request* request, uint32_t timeout_ms,
                 struct rio_tag_done* done);
/** Wait until a request is done, a message has come that no receive has matched, or a peer has
 * gone; rio_tag_next_done() and rio_tag_probe() tell what: take all there is before the next wait.
 * @return 1, 0, -ENODEV. */
int rio_tag_wait_any(rio_tag* tag, uint32_t timeout_ms);
/** Make progress until all sends have gone and arrived. Sends that were asked for (large ones, and
 *  synchronous) are not waited for before they are matched: they are under way still, so wait for
 *  them before the endpoint is closed. @return 0, -ETIMEDOUT, -ENODEV. */
int rio_tag_flush(rio_tag* tag, uint32_t timeout_ms);

/* ---- Barriers ------------------------------------------------------------------------------- */

/* Members of a group wait for each other: each passes a barrier once all have arrived at it. A
 * group that has failed stays failed: every later call gives its error, at all members. They learn
 * of it at once if a member's process ends, and after rio_msg_options.deliver_ms and a second if it
 * stops answering. No member passes a barrier at which a living member has not arrived. A context
 * for barriers and its groups belong to one thread at a time, as contexts do. */

/** Open a context for barriers. The first one of a port gets the card's barrier engine, if the card
 *  has one. @param number below RIO_MSG_CONTEXTS: its place in the port. @return 0, -EINVAL,
 * -EBUSY, -ENOMEM. */
int rio_barrier_open(rio_msg_port* port, uint32_t number, rio_barrier** out);
/** Close a context for barriers. Waits until messages of its groups have gone, up to a second.
 *  NULL does nothing. @return 0; -EBUSY: groups are not destroyed, and the context is open still.
 */
int rio_barrier_close(rio_barrier* barrier);
rio_msg_address rio_barrier_self(const rio_barrier* barrier);
/** Hot. Let the library work for all groups: rio_msg_progress() does not.
 *  @return 0, -ENODEV. */
int rio_barrier_progress(rio_barrier* barrier);

/** Begin to create a group; all its members do. Returns at once. Several groups may be under
 *  way, in any order.
 *  @param members of rio_barrier_self(), in the order of ranks, one a card; the same list at all
 *  members. Copied. @param rank of this member in it. @param options NULL: all defaults.
 *  @return 0; -EINVAL, -E2BIG (more than a schedule has rounds for), -EEXIST (the key is in use),
 *  -ENOTSUP (no card of that kind here), -ENOMEM; the log says more. */
int rio_barrier_create(rio_barrier* barrier, const rio_msg_address* members, uint32_t count,
                       uint32_t rank, const struct rio_barrier_options* options,
                       rio_barrier_group** out);
/** Wait until all members have agreed; with timeout_ms 0: whether they have.
 *  @return 1: the group is ready; 0: not within the time; -ENODEV; the error of the group, for
 *  example -EINVAL if members disagree, and -ETIMEDOUT if one has not joined. */
int rio_barrier_wait_ready(rio_barrier_group* group, uint32_t timeout_ms);
/** Leave a group. Does not wait. Members that arrive at a barrier at which this member has not
 *  arrived are told; if this member has arrived at a barrier and not passed it, all are told. NULL
 *  does nothing. */
void rio_barrier_destroy(rio_barrier_group* group);

/** Hot. Arrive at the next barrier, and return at once. In memory and on the card nothing needs
 *  this member's calls until it asks for the end; in software other members may wait for them.
 *  @return 0; -EAGAIN (not ready yet), -EBUSY (the previous barrier has not ended), the group's
 * error. */
int rio_barrier_arrive(rio_barrier_group* group);
/** Hot. Whether the barrier that this member arrived at has ended. Makes progress.
 *  @return 1: all members have arrived; 0: not yet; the group's error. */
int rio_barrier_test(rio_barrier_group* group);
/** Wait for the end of the barrier. Sleeps with options.sleeps, polls otherwise. @return 1: all
 * members have arrived; 0: not within the time, and it goes on; the group's error; -ENODEV. */
int rio_barrier_wait(rio_barrier_group* group, uint32_t timeout_ms);
/** Arrive, and wait for the end. @return as rio_barrier_wait(), or as rio_barrier_arrive() if that
 *  fails. */
int rio_barrier_run(rio_barrier_group* group, uint32_t timeout_ms);
/** Why the group has failed, if it has: *out has an error then. */
void rio_barrier_get_failure(const rio_barrier_group* group, struct rio_barrier_failure* out);
/** @return the way that the members have agreed on; RIO_BARRIER_ANY: not ready yet. */
uint32_t rio_barrier_way_of(const rio_barrier_group* group);

#ifdef __cplusplus
}
#endif

#endif /* RIOMSG_H */
