/**
 * @file
 * The messages of Open MPI's component mtl/rio on lib/tag, for its C sources. None of these calls
 * waits. Each takes the port's lock, if there is one; the functions mtl_rio_sent() and
 * mtl_rio_received() are called without it, so they may make any of these calls.
 */
#ifndef RIO_MTL_CORE_H
#define RIO_MTL_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/job/rio_fi_barrier.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RIO_MTL_NAME_BYTES 64u        /**< of a process, as peers find it */
#define RIO_MTL_ANY_SOURCE UINT32_MAX /**< stands for every peer */
#define RIO_MTL_COPIED_MOST 4064u     /**< bytes of a message that rio_mtl_send_copied() takes */
#define RIO_MTL_OPERATION_BYTES 256u  /**< room for a send or a receive under way */

typedef struct rio_mtl rio_mtl; /**< a port and its messages */

/** A send or a receive. While it is under way it must stay where it is. */
typedef struct rio_mtl_operation {
  uint64_t words[RIO_MTL_OPERATION_BYTES / 8];
} rio_mtl_operation;

/** A message, as a receive or a probe finds it. */
typedef struct rio_mtl_message {
  uint64_t bits;
  uint64_t length_bytes; /**< true one, also of a message that was longer than its buffer */
} rio_mtl_message;

/** Open the card that the environment names (FI_RIO_...). Logged. @param threads several threads
 *  call. @return 0, -EINVAL, or as msg::MessagePort::open(). */
int rio_mtl_open(bool threads, rio_mtl** out);
/** Let sent messages arrive, for up to a second, and close the card. */
void rio_mtl_close(rio_mtl* self);
/** The name of this process for its peers. @param out RIO_MTL_NAME_BYTES. @return false: the card's
 *  address is too long for a name. */
bool rio_mtl_name(rio_mtl* self, void* out);
/** Find where messages to a peer go. Logged. @param name RIO_MTL_NAME_BYTES foreign bytes.
 *  @param out the peer, below RIO_MTL_ANY_SOURCE. @return 0, -EINVAL: no name, -EHOSTUNREACH:
 *  another fabric, -ECONNRESET: another process has its destID now, or as Process::reach(). */
int rio_mtl_meet(rio_mtl* self, const void* name, uint32_t* out);
/** The calls for barriers on this port. */
const struct rio_fi_barrier_calls* rio_mtl_barriers(void);

/** Hot. Send. @param data stays as it is while the send is under way. @return 1: done already; 0:
 *  under way, ends with mtl_rio_sent(); -errno: nothing has happened; logged if the peer has gone.
 */
int rio_mtl_send(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes,
                 rio_mtl_operation* operation);
/** Hot. Send what needs no request. @return whether it was sent; else nothing has happened. */
bool rio_mtl_send_now(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes);
/** Hot. Send as rio_mtl_send() does, but nothing of the caller's is used after the call: if the
 *  message has to wait, a copy of it does. @param bytes at most RIO_MTL_COPIED_MOST. @return 1;
 * -EAGAIN: the peer has not answered yet: make progress and try again, which is not for ever;
 * -errno. */
int rio_mtl_send_copied(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes);
/** Send as rio_mtl_send() does, but the send is done only when the message was matched. */
int rio_mtl_send_sync(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes,
                      rio_mtl_operation* operation);
/** Hot. Receive. @param ignore bits that are not compared. @return 0: it ends with
 *  mtl_rio_received(), maybe before this returns; -errno: nothing has happened. */
int rio_mtl_receive(rio_mtl* self, uint32_t source, uint64_t bits, uint64_t ignore, void* buffer,
                    size_t capacity, rio_mtl_operation* operation);
/** Whether a receive of these bits would take a message now. Makes progress. */
bool rio_mtl_probe(rio_mtl* self, uint32_t source, uint64_t bits, uint64_t ignore,
                   rio_mtl_message* out);
/** rio_mtl_probe(), and no other receive finds the message. @return the handle; null: none. */
void* rio_mtl_claim(rio_mtl* self, uint32_t source, uint64_t bits, uint64_t ignore,
                    rio_mtl_message* out);
/** Receive a claimed message. @param claimed used up. @return as rio_mtl_receive(). */
int rio_mtl_receive_claimed(rio_mtl* self, void* claimed, void* buffer, size_t capacity,
                            rio_mtl_operation* operation);
/** Cancel a receive. @return whether it ends soon, with -ECANCELED; else it has a message. */
bool rio_mtl_cancel(rio_mtl* self, rio_mtl_operation* receive);
/** Tell whether there are more ranks than cores, so that the caller yields after each call of
 *  rio_mtl_progress() in vain. At first there are not. Any thread. */
void rio_mtl_tell_crowd(bool is_crowd);
/** Hot. Let the port and the messages work. @return how many operations have ended. */
int rio_mtl_progress(rio_mtl* self);

/** The component's: a send has ended. @param status 0, or -errno. */
void mtl_rio_sent(rio_mtl_operation* operation, int status);
/** The component's: a receive has ended. @param status 0; -EMSGSIZE: the message was longer than
 *  the buffer, which is full; -ECANCELED; or another -errno. @param bits, length_bytes of the
 *  message, with 0 and -EMSGSIZE. */
void mtl_rio_received(rio_mtl_operation* operation, int status, uint64_t bits,
                      uint64_t length_bytes);

#ifdef __cplusplus
}
#endif

#endif
