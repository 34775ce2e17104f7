#include "lib/ompi/mtl_messages.h"
#include "lib/ompi/mtl_rio.h"

/* The messages of a swap. */
struct swap_state {
  mtl_rio_request_t send;
  mtl_rio_request_t receive;
};

static inline bool is_done(const mtl_rio_request_t* request) {
  return *(const volatile bool*)&request->is_done;
}

/* An operation has ended in the call that began it. */
static inline void end_at_once(mtl_rio_request_t* request, int status) {
  request->status = status;
  request->is_done = true;
}

/* Prepares an operation without a request of Open MPI's. @param buffer NULL: there is nothing to
 * do.
 * @param address the peer's. @return false: it has ended already. */
static inline bool begin(struct ompi_communicator_t* comm, int peer, const void* buffer,
                         mtl_rio_request_t* request, uint32_t* address) {
  request->super.ompi_req = NULL;
  request->packed = NULL;
  request->is_done = false;
  if (buffer == NULL) {
    end_at_once(request, 0);
    return false;
  }
  *address = mtl_rio_peer_of(comm, peer);
  if (OPAL_UNLIKELY(*address == RIO_MTL_ANY_SOURCE)) {
    end_at_once(request, -EHOSTUNREACH);
    return false;
  }
  return true;
}

static inline void begin_send(struct ompi_communicator_t* comm, int tag,
                              const struct mtl_rio_swap* swap, mtl_rio_request_t* request) {
  uint32_t address = 0;
  if (!begin(comm, swap->peer, swap->out, request, &address)) {
    return;
  }
  const int rc =
      rio_mtl_send(mtl_rio_core(), address, mtl_rio_bits_of(comm, ompi_comm_rank(comm), tag),
                   swap->out, swap->out_bytes, &request->operation);
  if (OPAL_LIKELY(rc != 0)) {
    end_at_once(request, rc < 0 ? rc : 0);
  }
}

static inline void begin_receive(struct ompi_communicator_t* comm, int tag,
                                 const struct mtl_rio_swap* swap, mtl_rio_request_t* request) {
  uint32_t address = 0;
  if (!begin(comm, swap->peer, swap->in, request, &address)) {
    return;
  }
  request->capacity = swap->in_bytes;
  const int rc = rio_mtl_receive(mtl_rio_core(), address, mtl_rio_bits_of(comm, swap->peer, tag), 0,
                                 swap->in, swap->in_bytes, &request->operation);
  if (OPAL_UNLIKELY(rc < 0)) {
    end_at_once(request, rc);
  }
}

/* Waits for an operation. */
static void wait_for(const mtl_rio_request_t* request) {
  for (unsigned looks = 1; !is_done(request); ++looks) {
    if (rio_is_progress_due(looks)) {
      opal_progress();
    } else {
      (void)mtl_rio_progress();
    }
  }
  opal_atomic_rmb(); /* is_done before the status; pairs with end_waited() */
}

/* @return 0, or -errno of a swap whose operations have ended. */
static inline int status_of(const struct swap_state* state) {
  return OPAL_LIKELY(state->send.status == 0) ? state->receive.status : state->send.status;
}

static int wait_for_all(struct swap_state* states, int count) {
  for (int i = 0; i < count; ++i) {
    wait_for(&states[i].send);
  }
  int rc = 0;
  for (int i = 0; i < count; ++i) {
    struct swap_state* const state = &states[i];
    if (OPAL_UNLIKELY(state->send.status != 0) && !is_done(&state->receive)) {
      /* The peer cannot be reached, so its message may never come. */
      (void)rio_mtl_cancel(mtl_rio_core(), &state->receive.operation);
    }
    wait_for(&state->receive);
    rc = rc == 0 ? status_of(state) : rc;
  }
  return rc;
}

int mtl_rio_exchange(struct ompi_communicator_t* comm, int tag, const struct mtl_rio_swap* swaps,
                     int count) {
  struct swap_state states[kMtlRioSwapsMost];
  /* A short message leaves before anything is looked for: nothing is received before its receive is
   * begun. A longer one needs its receive when its first part arrives; and where something may be
   * looked for between both, a receive that is begun late would miss the end of its peer. */
  const bool is_short =
      count == 1 && swaps[0].in_bytes <= RIO_MTL_COPIED_MOST && !opal_using_threads();
  for (int i = 0; i < count && !is_short; ++i) {
    begin_receive(comm, tag, &swaps[i], &states[i].receive);
  }
  for (int i = 0; i < count; ++i) {
    begin_send(comm, tag, &swaps[i], &states[i].send);
  }
  for (int i = 0; i < count && is_short; ++i) {
    begin_receive(comm, tag, &swaps[i], &states[i].receive);
  }
  return wait_for_all(states, count);
}
