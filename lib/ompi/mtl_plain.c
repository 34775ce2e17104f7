#include <string.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/pml/base/base.h>
#include "lib/ompi/mtl_messages.h"

/* Messages of contiguous memory. Open MPI's pml `cm` prepares a convertor and a large request for
 * each of its messages, which such messages do not need. So these functions stand in the places of
 * its own, and leave all other messages to them. Both match alike, since lib/tag does it. */

static mca_pml_base_module_t cm; /* its functions, as Open MPI has chosen them */

/* A receive. It is given back when neither the user nor lib/tag has it any more. */
struct plain_receive {
  ompi_request_t super;
  mtl_rio_request_t own;
  rio_atomic_int32_t holders;
};
typedef struct plain_receive plain_receive_t;

static inline plain_receive_t* receive_of(mca_mtl_request_t* super) {
  return (plain_receive_t*)((char*)super - offsetof(plain_receive_t, own));
}

/* Communicators that live as long as the process need not be held. */
static inline void hold(struct ompi_communicator_t* comm) {
  if (OPAL_UNLIKELY(!OMPI_COMM_IS_INTRINSIC(comm))) {
    OBJ_RETAIN(comm);
  }
}

static inline void let_go(struct ompi_communicator_t* comm) {
  if (OPAL_UNLIKELY(!OMPI_COMM_IS_INTRINSIC(comm))) {
    OBJ_RELEASE(comm);
  }
}

static inline void drop(plain_receive_t* receive) {
  if (opal_thread_add_fetch_32(&receive->holders, -1) == 0) {
    struct ompi_communicator_t* const comm = receive->super.req_mpi_object.comm;
    OMPI_REQUEST_FINI(&receive->super);
    opal_free_list_return(&mca_mtl_rio_component.receives, &receive->super.super);
    let_go(comm);
  }
}

static void end_receive(mca_mtl_request_t* super) {
  plain_receive_t* const receive = receive_of(super);
  (void)ompi_request_complete(&receive->super, true);
  drop(receive);
}

static int free_receive(ompi_request_t** request) {
  plain_receive_t* const receive = (plain_receive_t*)*request;
  *request = MPI_REQUEST_NULL;
  drop(receive);
  return OMPI_SUCCESS;
}

static int cancel_receive(ompi_request_t* request, int flag) {
  return mtl_rio_cancel(&mtl_rio_module, &((plain_receive_t*)request)->own.super, flag);
}

static void construct_receive(plain_receive_t* receive) {
  receive->super.req_type = OMPI_REQUEST_PML;
  receive->super.req_start = NULL; /* persistent ones are cm's */
  receive->super.req_free = free_receive;
  receive->super.req_cancel = cancel_receive;
  receive->own.super.ompi_req = &receive->super;
  receive->own.super.completion_callback = end_receive;
  receive->own.convertor = NULL;
  receive->own.packed = NULL;
  receive->own.is_send = false;
  receive->own.is_matched = false;
}
OBJ_CLASS_INSTANCE(plain_receive_t, ompi_request_t, construct_receive, NULL);

/* Part of the memory of a message: where it begins, and how long it is. */
struct span {
  char* data;
  size_t bytes;
};

/* @return whether the elements lie one behind the other. */
static inline bool find_span(const void* buffer, size_t count, struct ompi_datatype_t* type,
                             struct span* out) {
  if (OPAL_UNLIKELY(count > INT32_MAX) ||
      OPAL_UNLIKELY(!ompi_datatype_is_contiguous_memory_layout(type, (int32_t)count))) {
    return false;
  }
  out->data = (char*)buffer + type->super.true_lb;
  out->bytes = count * type->super.size;
  return true;
}

static inline bool may_go_at_once(mca_pml_base_send_mode_t mode) {
  return mode == MCA_PML_BASE_SEND_STANDARD || mode == MCA_PML_BASE_SEND_READY;
}

static int send_plain(const void* buffer, size_t count, struct ompi_datatype_t* type, int rank,
                      int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t* comm) {
  struct span span;
  if (OPAL_UNLIKELY(!may_go_at_once(mode) || !find_span(buffer, count, type, &span)) ||
      span.bytes > RIO_MTL_COPIED_MOST) {
    return cm.pml_send(buffer, count, type, rank, tag, mode, comm);
  }
  const uint32_t to = mtl_rio_peer_of(comm, rank);
  if (OPAL_UNLIKELY(to == RIO_MTL_ANY_SOURCE)) {
    return OMPI_ERR_UNREACH;
  }
  return mtl_rio_send_short(to, mtl_rio_bits_of(comm, ompi_comm_rank(comm), tag), span.data,
                            span.bytes);
}

/* Nothing is asked of the request of a send but whether it was cancelled, which none is. */
static int isend_plain(const void* buffer, size_t count, struct ompi_datatype_t* type, int rank,
                       int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t* comm,
                       struct ompi_request_t** request) {
  struct span span;
  if (OPAL_LIKELY(may_go_at_once(mode) && find_span(buffer, count, type, &span))) {
    const uint32_t to = mtl_rio_peer_of(comm, rank);
    if (OPAL_LIKELY(to != RIO_MTL_ANY_SOURCE) &&
        rio_mtl_send_now(mtl_rio_core(), to, mtl_rio_bits_of(comm, ompi_comm_rank(comm), tag),
                         span.data, span.bytes)) {
      *request = &ompi_request_empty;
      return OMPI_SUCCESS;
    }
  }
  return cm.pml_isend(buffer, count, type, rank, tag, mode, comm, request);
}

/* The status of a receive that ends without a message. */
static inline void begin_status(ompi_status_public_t* status, int rank, int tag) {
  status->MPI_SOURCE = rank;
  status->MPI_TAG = tag;
  status->_ucount = 0;
  status->_cancelled = 0;
}

static inline int begin_receive(const struct span* span, const struct mtl_rio_wanted* wanted,
                                mtl_rio_request_t* own) {
  own->capacity = span->bytes;
  own->is_cancelled = false;
  const int rc = rio_mtl_receive(mtl_rio_core(), wanted->source, wanted->bits, wanted->ignore,
                                 span->data, span->bytes, &own->operation);
  return OPAL_LIKELY(rc == 0) ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

static int irecv_plain(void* buffer, size_t count, struct ompi_datatype_t* type, int rank, int tag,
                       struct ompi_communicator_t* comm, struct ompi_request_t** request) {
  struct span span;
  struct mtl_rio_wanted wanted;
  if (OPAL_UNLIKELY(!find_span(buffer, count, type, &span) ||
                    mtl_rio_want(comm, rank, tag, &wanted) != OMPI_SUCCESS)) {
    return cm.pml_irecv(buffer, count, type, rank, tag, comm, request);
  }
  plain_receive_t* const receive =
      (plain_receive_t*)opal_free_list_get(&mca_mtl_rio_component.receives);
  if (OPAL_UNLIKELY(receive == NULL)) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  OMPI_REQUEST_INIT(&receive->super, false);
  receive->super.req_state = OMPI_REQUEST_ACTIVE;
  receive->super.req_mpi_object.comm = comm;
  begin_status(&receive->super.req_status, rank, tag);
  hold(comm);
  receive->holders = 2; /* the user, and lib/tag */
  const int rc = begin_receive(&span, &wanted, &receive->own);
  if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
    receive->holders = 1;
    drop(receive);
    return rc;
  }
  *request = &receive->super;
  return OMPI_SUCCESS;
}

static void end_blocking(mca_mtl_request_t* super) {
  ((mtl_rio_request_t*)super)->is_done = true;
}

static int recv_plain(void* buffer, size_t count, struct ompi_datatype_t* type, int rank, int tag,
                      struct ompi_communicator_t* comm, ompi_status_public_t* status) {
  struct span span;
  struct mtl_rio_wanted wanted;
  /* Of several threads, cm's waits let one look for all. */
  if (OPAL_UNLIKELY(opal_using_threads() || !find_span(buffer, count, type, &span) ||
                    mtl_rio_want(comm, rank, tag, &wanted) != OMPI_SUCCESS)) {
    return cm.pml_recv(buffer, count, type, rank, tag, comm, status);
  }
  ompi_request_t super; /* for its status alone */
  mtl_rio_request_t own;
  begin_status(&super.req_status, rank, tag);
  own.super.ompi_req = &super;
  own.super.completion_callback = end_blocking;
  own.packed = NULL;
  own.is_done = false;
  int rc = begin_receive(&span, &wanted, &own);
  if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
    return rc;
  }
  for (unsigned looks = 1; !*(volatile bool*)&own.is_done; ++looks) {
    if (rio_is_progress_due(looks)) {
      opal_progress();
    } else {
      (void)mtl_rio_progress();
    }
  }
  if (status != MPI_STATUS_IGNORE) {
    OMPI_COPY_STATUS(status, super.req_status, false);
  }
  return super.req_status.MPI_ERROR;
}

int mtl_rio_open_plain(void) {
  opal_free_list_t* const receives = &mca_mtl_rio_component.receives;
  OBJ_CONSTRUCT(receives, opal_free_list_t);
  return opal_free_list_init(receives, sizeof(plain_receive_t), opal_cache_line_size,
                             OBJ_CLASS(plain_receive_t), 0, 0, 0, -1, 64, NULL, 0, NULL, NULL,
                             NULL);
}

void mtl_rio_close_plain(void) {
  OBJ_DESTRUCT(&mca_mtl_rio_component.receives);
}

/* Components that look on, as `monitoring`, stand in front of cm: they see all messages. */
void mtl_rio_take_plain(void) {
  const char* const chosen = mca_pml_base_selected_component.pmlm_version.mca_component_name;
  if (cm.pml_send != NULL || !mca_mtl_rio_component.is_plain || strcmp(chosen, "cm") != 0 ||
      !mtl_rio_may_take_plain()) {
    return;
  }
  cm = mca_pml;
  mca_pml.pml_send = send_plain;
  mca_pml.pml_isend = isend_plain;
  mca_pml.pml_recv = recv_plain;
  mca_pml.pml_irecv = irecv_plain;
}
