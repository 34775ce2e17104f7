#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <ompi/communicator/communicator.h>
#include <ompi/mca/mtl/base/mtl_base_datatype.h>
#include <ompi/message/message.h>
#include "lib/ompi/mtl_messages.h"

static inline mtl_rio_request_t* request_of(rio_mtl_operation* operation) {
  return (mtl_rio_request_t*)((char*)operation - offsetof(mtl_rio_request_t, operation));
}

__attribute__((noinline)) uint32_t mtl_rio_meet_peer(struct ompi_proc_t* proc) {
  return mtl_rio_add_procs(&mtl_rio_module, 1, &proc) == OMPI_SUCCESS
             ? (uint32_t)(uintptr_t)proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL]
             : RIO_MTL_ANY_SOURCE;
}

static inline void fill_status(ompi_status_public_t* status, uint64_t bits, size_t length_bytes) {
  status->MPI_SOURCE = (int)(bits >> kMtlRioTagBits & 0xFFFF);
  status->MPI_TAG = (int)(uint32_t)bits;
  status->_ucount = length_bytes;
  status->_cancelled = 0;
}

/* Open MPI knows at the end of MPI_Init() whether it was told that ranks outnumber the cores. */
static inline void tell_crowd(void) {
  static bool is_told = false; /* relaxed: it guards no data */
  const bool is_crowd = opal_progress_yield_when_idle;
  if (OPAL_UNLIKELY(__atomic_load_n(&is_told, __ATOMIC_RELAXED) != is_crowd)) {
    __atomic_store_n(&is_told, is_crowd, __ATOMIC_RELAXED);
    rio_mtl_tell_crowd(is_crowd);
  }
}

int mtl_rio_progress(void) {
  tell_crowd();
  return rio_mtl_progress(mtl_rio_core());
}

/* A message to be sent. */
struct message {
  void* data;
  size_t bytes;
  uint64_t bits;
  uint32_t to;
  bool is_packed; /* `data` is to be freed */
};

static inline int prepare_send(struct ompi_communicator_t* comm, int rank, int tag,
                               struct opal_convertor_t* convertor, struct message* out) {
  const int rc = ompi_mtl_datatype_pack(convertor, &out->data, &out->bytes, &out->is_packed);
  if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
    return rc;
  }
  out->bits = mtl_rio_bits_of(comm, ompi_comm_rank(comm), tag);
  out->to = mtl_rio_peer_of(comm, rank);
  if (OPAL_UNLIKELY(out->to == RIO_MTL_ANY_SOURCE)) {
    if (out->is_packed) {
      free(out->data);
    }
    return OMPI_ERR_UNREACH;
  }
  return OMPI_SUCCESS;
}

/* Begins a send. @return 1: it is done; 0: it is under way; an error of Open MPI's, below 0. */
static inline int begin_send(const struct message* message, mca_pml_base_send_mode_t mode,
                             mtl_rio_request_t* request) {
  request->packed = message->is_packed ? message->data : NULL;
  request->is_send = true;
  const int rc = OPAL_LIKELY(mode != MCA_PML_BASE_SEND_SYNCHRONOUS)
                     ? rio_mtl_send(mtl_rio_core(), message->to, message->bits, message->data,
                                    message->bytes, &request->operation)
                     : rio_mtl_send_sync(mtl_rio_core(), message->to, message->bits, message->data,
                                         message->bytes, &request->operation);
  if (rc != 0 && OPAL_UNLIKELY(message->is_packed)) {
    free(message->data);
  }
  return rc < 0 ? OMPI_ERROR : rc;
}

/* A blocking send that waits until its bytes have gone. */
__attribute__((noinline)) static int send_and_wait(const struct message* message,
                                                   mca_pml_base_send_mode_t mode) {
  mtl_rio_request_t request;
  request.super.ompi_req = NULL;
  request.is_done = false;
  const int rc = begin_send(message, mode, &request);
  if (rc != 0) {
    return rc == 1 ? OMPI_SUCCESS : rc;
  }
  while (!*(volatile bool*)&request.is_done) {
    opal_progress();
  }
  opal_atomic_rmb(); /* is_done before the status; pairs with mtl_rio_sent() */
  return request.status == 0 ? OMPI_SUCCESS : OMPI_ERROR;
}

int mtl_rio_send_short(uint32_t to, uint64_t bits, const void* data, size_t bytes) {
  int rc = 0;
  while (
      OPAL_UNLIKELY((rc = rio_mtl_send_copied(mtl_rio_core(), to, bits, data, bytes)) == -EAGAIN)) {
    opal_progress();
    sched_yield(); /* the peer may be waiting for this CPU */
  }
  return OPAL_LIKELY(rc == 1) ? OMPI_SUCCESS : OMPI_ERROR;
}

int mtl_rio_send(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                 int tag, struct opal_convertor_t* convertor, mca_pml_base_send_mode_t mode) {
  (void)mtl;
  struct message message;
  int rc = prepare_send(comm, rank, tag, convertor, &message);
  if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
    return rc;
  }
  if (message.bytes > RIO_MTL_COPIED_MOST || OPAL_UNLIKELY(mode == MCA_PML_BASE_SEND_SYNCHRONOUS)) {
    return send_and_wait(&message, mode);
  }
  rc = mtl_rio_send_short(message.to, message.bits, message.data, message.bytes);
  if (OPAL_UNLIKELY(message.is_packed)) {
    free(message.data);
  }
  return rc;
}

int mtl_rio_isend(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                  int tag, struct opal_convertor_t* convertor, mca_pml_base_send_mode_t mode,
                  bool blocking, mca_mtl_request_t* request) {
  (void)mtl;
  (void)blocking;
  struct message message;
  int rc = prepare_send(comm, rank, tag, convertor, &message);
  if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
    return rc;
  }
  rc = begin_send(&message, mode, (mtl_rio_request_t*)request);
  if (OPAL_LIKELY(rc == 1)) {
    request->ompi_req->req_status.MPI_ERROR = MPI_SUCCESS;
    request->completion_callback(request);
  }
  return rc < 0 ? rc : OMPI_SUCCESS;
}

/* Ends an operation without a request of Open MPI's, whose caller waits for it. */
__attribute__((noinline)) static void end_waited(mtl_rio_request_t* request, int status) {
  request->status = status;
  opal_atomic_wmb(); /* the status before is_done; pairs with send_and_wait(), mtl_rio_exchange() */
  *(volatile bool*)&request->is_done = true;
}

void mtl_rio_sent(rio_mtl_operation* operation, int status) {
  mtl_rio_request_t* const request = request_of(operation);
  free(request->packed);
  if (request->super.ompi_req == NULL) {
    end_waited(request, status);
    return;
  }
  request->super.ompi_req->req_status.MPI_ERROR = status == 0 ? MPI_SUCCESS : MPI_ERR_INTERN;
  request->super.completion_callback(&request->super);
}

/* Prepares a receive. @param buffer where the message goes. */
static inline int prepare_receive(struct opal_convertor_t* convertor, mtl_rio_request_t* request,
                                  void** buffer) {
  bool is_packed = false;
  const int rc = ompi_mtl_datatype_recv_buf(convertor, buffer, &request->capacity, &is_packed);
  request->packed = is_packed ? *buffer : NULL;
  request->convertor = convertor;
  request->is_send = false;
  request->is_matched = false;
  request->is_cancelled = false;
  return OPAL_LIKELY(!is_packed || *buffer != NULL) ? rc : OMPI_ERR_OUT_OF_RESOURCE;
}

static int after_receive(mtl_rio_request_t* request, int rc) {
  if (OPAL_LIKELY(rc == 0)) {
    return OMPI_SUCCESS;
  }
  free(request->packed);
  return rc == -ENOMEM ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERROR;
}

int mtl_rio_irecv(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                  int tag, struct opal_convertor_t* convertor, mca_mtl_request_t* super) {
  (void)mtl;
  mtl_rio_request_t* const request = (mtl_rio_request_t*)super;
  struct mtl_rio_wanted wanted;
  void* buffer = NULL;
  int rc = mtl_rio_want(comm, rank, tag, &wanted);
  rc = OPAL_LIKELY(rc == OMPI_SUCCESS) ? prepare_receive(convertor, request, &buffer) : rc;
  if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
    return rc;
  }
  return after_receive(
      request, rio_mtl_receive(mtl_rio_core(), wanted.source, wanted.bits, wanted.ignore, buffer,
                               request->capacity, &request->operation));
}

/* A receive has failed, was cancelled, or has a message that is longer than its buffer. */
__attribute__((noinline)) static int error_of(mtl_rio_request_t* request, int status) {
  if (status == -ECANCELED && request->is_cancelled) {
    request->super.ompi_req->req_status._cancelled = true;
    return MPI_SUCCESS;
  }
  return status == -EMSGSIZE ? MPI_ERR_TRUNCATE : MPI_ERR_INTERN;
}

/* The status of a swap whose message has arrived. */
static inline int swap_status(const mtl_rio_request_t* request, uint64_t length_bytes) {
  if (OPAL_LIKELY(length_bytes == request->capacity)) {
    return 0;
  }
  return length_bytes == 0 ? MTL_RIO_FAILED_BEFORE : -EMSGSIZE;
}

void mtl_rio_received(rio_mtl_operation* operation, int status, uint64_t bits,
                      uint64_t length_bytes) {
  mtl_rio_request_t* const request = request_of(operation);
  if (OPAL_UNLIKELY(request->super.ompi_req == NULL)) {
    end_waited(request, status == 0 ? swap_status(request, length_bytes) : status);
    return;
  }
  ompi_status_public_t* const told = &request->super.ompi_req->req_status;
  told->MPI_ERROR = MPI_SUCCESS;
  if (OPAL_UNLIKELY(status != 0)) {
    told->MPI_ERROR = error_of(request, status);
  }
  size_t placed = 0;
  if (status == 0 || status == -EMSGSIZE) {
    placed = length_bytes < request->capacity ? length_bytes : request->capacity;
    fill_status(told, bits, placed);
  }
  if (OPAL_UNLIKELY(request->packed != NULL)) {
    if (placed != 0) {
      ompi_mtl_datatype_unpack(request->convertor, request->packed, placed); /* frees it */
    } else {
      free(request->packed);
    }
  }
  request->super.completion_callback(&request->super);
}

int mtl_rio_iprobe(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                   int tag, int* flag, struct ompi_status_public_t* status) {
  (void)mtl;
  struct mtl_rio_wanted wanted;
  rio_mtl_message found;
  const int rc = mtl_rio_want(comm, rank, tag, &wanted);
  if (rc != OMPI_SUCCESS) {
    return rc;
  }
  *flag = rio_mtl_probe(mtl_rio_core(), wanted.source, wanted.bits, wanted.ignore, &found);
  if (*flag != 0 && status != MPI_STATUS_IGNORE) {
    status->MPI_ERROR = MPI_SUCCESS;
    fill_status(status, found.bits, found.length_bytes);
  }
  return OMPI_SUCCESS;
}

int mtl_rio_improbe(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                    int tag, int* flag, struct ompi_message_t** message,
                    struct ompi_status_public_t* status) {
  (void)mtl;
  struct mtl_rio_wanted wanted;
  rio_mtl_message found;
  int rc = mtl_rio_want(comm, rank, tag, &wanted);
  if (rc != OMPI_SUCCESS) {
    return rc;
  }
  *flag = 0;
  *message = MPI_MESSAGE_NULL;
  ompi_message_t* const made = ompi_message_alloc();
  if (made == NULL) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  made->req_ptr = rio_mtl_claim(mtl_rio_core(), wanted.source, wanted.bits, wanted.ignore, &found);
  if (made->req_ptr == NULL) {
    ompi_message_return(made);
    return OMPI_SUCCESS;
  }
  ompi_status_public_t own;
  fill_status(&own, found.bits, found.length_bytes);
  made->comm = comm;
  made->peer = own.MPI_SOURCE;
  made->count = found.length_bytes;
  *message = made;
  *flag = 1;
  if (status != MPI_STATUS_IGNORE) {
    status->MPI_ERROR = MPI_SUCCESS;
    fill_status(status, found.bits, found.length_bytes);
  }
  return OMPI_SUCCESS;
}

int mtl_rio_imrecv(struct mca_mtl_base_module_t* mtl, struct opal_convertor_t* convertor,
                   struct ompi_message_t** message, mca_mtl_request_t* super) {
  (void)mtl;
  mtl_rio_request_t* const request = (mtl_rio_request_t*)super;
  void* buffer = NULL;
  const int rc = prepare_receive(convertor, request, &buffer);
  if (rc != OMPI_SUCCESS) {
    return rc;
  }
  request->is_matched = true;
  void* const claimed = (*message)->req_ptr;
  ompi_message_return(*message);
  *message = MPI_MESSAGE_NULL;
  return after_receive(request, rio_mtl_receive_claimed(mtl_rio_core(), claimed, buffer,
                                                        request->capacity, &request->operation));
}

/* Open MPI cancels no sends, as MPI 4 demands. */
int mtl_rio_cancel(struct mca_mtl_base_module_t* mtl, mca_mtl_request_t* super, int flag) {
  (void)mtl;
  (void)flag;
  mtl_rio_request_t* const request = (mtl_rio_request_t*)super;
  if (request->is_send || request->is_matched) {
    return OMPI_SUCCESS;
  }
  mtl_rio_progress(); /* a message that has arrived is received */
  if (REQUEST_COMPLETE(request->super.ompi_req)) {
    return OMPI_SUCCESS;
  }
  request->is_cancelled = true;
  request->is_cancelled = rio_mtl_cancel(mtl_rio_core(), &request->operation);
  while (request->is_cancelled && !REQUEST_COMPLETE(request->super.ompi_req)) {
    mtl_rio_progress();
  }
  return OMPI_SUCCESS;
}
