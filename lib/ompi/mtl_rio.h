/**
 * @file
 * Open MPI's component mtl/rio: two-sided messages on lib/tag, for the pml `cm`.
 *
 * Match bits of a message: the index of its communicator, the sender's rank in it, and the tag,
 * with 16, 16 and 32 bits. Open MPI's own tags are negative; MPI_ANY_TAG ignores all bits of the
 * tag but its sign.
 */
#ifndef MTL_RIO_H
#define MTL_RIO_H

#include <errno.h>

#include "lib/ompi/compat.h"
#include "lib/ompi/mtl_core.h"

#include <ompi/mca/mtl/base/base.h>
#include <ompi/mca/mtl/mtl.h>
#include <ompi/proc/proc.h>
#include <opal/datatype/opal_convertor.h>

enum {
  kMtlRioIndexBits = 16, /**< of a communicator, and of a rank in it */
  kMtlRioTagBits = 32,
};

/** A send or a receive. Open MPI has room for it behind each of its requests. */
struct mtl_rio_request {
  mca_mtl_request_t super;
  opal_convertor_t* convertor; /**< of a receive */
  void* packed;                /**< bytes that are not contiguous in the user's memory; or null */
  size_t capacity;             /**< of a receive, bytes */
  bool is_send;
  bool is_matched;   /**< a receive of a claimed message, which nothing cancels */
  bool is_cancelled; /**< of a receive, by MPI_Cancel */
  bool is_done;      /**< of a blocking send or an exchange, without a request of Open MPI's */
  int status;        /**< of those, when they are done: 0, or -errno */
  rio_mtl_operation operation;
};
typedef struct mtl_rio_request mtl_rio_request_t;

/** A message to a rank, and one from it, or one of both. */
struct mtl_rio_swap {
  int peer;         /**< another rank of the communicator */
  const void* out;  /**< null: none is sent; does not overlap `in` */
  size_t out_bytes; /**< 0: tells the peer that this rank has failed */
  void* in;         /**< null: none is received */
  size_t in_bytes;  /**< above 0; the message's length */
};
enum { kMtlRioSwapsMost = 7 }; /**< most swaps of an exchange */
#define MTL_RIO_FAILED_BEFORE                                         \
  (-ECONNABORTED) /**< status of a swap: the peer said that it failed \
                   */
/** Send a message to each of some ranks, and wait for one from each. Needs no request and no
 *  convertor; for collective calls, in which both ranks send. @param swaps 1 to kMtlRioSwapsMost,
 *  each with another peer. @return 0; or of the first swap that failed, while the others were
 *  carried out: MTL_RIO_FAILED_BEFORE; -EMSGSIZE: the message had another length; or -errno as
 *  rio_mtl_send() and mtl_rio_received(). */
typedef int (*mtl_rio_exchange_fn_t)(struct ompi_communicator_t* comm, int tag,
                                     const struct mtl_rio_swap* swaps, int count);
int mtl_rio_exchange(struct ompi_communicator_t* comm, int tag, const struct mtl_rio_swap* swaps,
                     int count);

/** The component, and the state of the process. */
struct mtl_rio_component {
  mca_mtl_base_component_t super;
  int priority;
  rio_mtl* core;                            /**< null: the card is not open */
  const struct rio_fi_barrier_calls* calls; /**< for mca_coll_rio.so; null: the card is not open */
  mtl_rio_exchange_fn_t exchange;           /**< for mca_coll_rio.so */
  bool is_progressing;
  bool is_plain;             /**< a parameter: contiguous messages pass by pml `cm` */
  opal_free_list_t receives; /**< of such messages */
};
typedef struct mtl_rio_component mtl_rio_component_t;
__attribute__((visibility("default"))) extern mtl_rio_component_t mca_mtl_rio_component;

extern mca_mtl_base_module_t mtl_rio_module;

/** Read the name that a process has published. @param out RIO_MTL_NAME_BYTES. @return whether there
 *  is one. */
bool mtl_rio_read_name(const opal_process_name_t* process, void* out);

int mtl_rio_add_procs(struct mca_mtl_base_module_t* mtl, size_t count, struct ompi_proc_t** procs);
int mtl_rio_del_procs(struct mca_mtl_base_module_t* mtl, size_t count, struct ompi_proc_t** procs);
int mtl_rio_progress(void);

int mtl_rio_send(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                 int tag, struct opal_convertor_t* convertor, mca_pml_base_send_mode_t mode);
int mtl_rio_isend(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                  int tag, struct opal_convertor_t* convertor, mca_pml_base_send_mode_t mode,
                  bool blocking, mca_mtl_request_t* request);
int mtl_rio_irecv(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                  int tag, struct opal_convertor_t* convertor, mca_mtl_request_t* request);
int mtl_rio_iprobe(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                   int tag, int* flag, struct ompi_status_public_t* status);
int mtl_rio_improbe(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm, int rank,
                    int tag, int* flag, struct ompi_message_t** message,
                    struct ompi_status_public_t* status);
int mtl_rio_imrecv(struct mca_mtl_base_module_t* mtl, struct opal_convertor_t* convertor,
                   struct ompi_message_t** message, mca_mtl_request_t* request);
int mtl_rio_cancel(struct mca_mtl_base_module_t* mtl, mca_mtl_request_t* request, int flag);

#endif
