/**
 * @file
 * Open MPI's component coll/rio: barriers of mtl/rio's port, or of the provider's if Open MPI's
 * mtl/ofi carries the messages; and with mtl/rio, MPI_Allreduce. "The module
 * before" is the one whose barriers and reductions a communicator would have without this
 * component.
 */
#ifndef COLL_RIO_H
#define COLL_RIO_H

#include <stdbool.h>

#include "lib/job/rio_fi_barrier.h"
#include "lib/ompi/compat.h"
#include "lib/ompi/mtl_rio.h"

/** The carrier of the barriers of a communicator. */
enum rio_coll_way {
  RIO_COLL_UNDECIDED, /**< its first barrier decides, or its ninth reduction of few bytes */
  RIO_COLL_JOINING,   /**< its group, once the members have agreed */
  RIO_COLL_GROUP,     /**< its group */
  RIO_COLL_BEFORE,    /**< the module before: no group can reach all members, as each one knows */
  RIO_COLL_FAILED,    /**< none: this process cannot take part, and the others do not know */
};

/** The component's state of a communicator. The component's lock guards all but `super`; while
 *  `waiting` is empty, the thread that calls a barrier needs no lock. */
struct coll_rio_module {
  mca_coll_base_module_t super;
  ompi_communicator_t* comm;
  mca_coll_base_module_barrier_fn_t barrier_before;
  mca_coll_base_module_t* barrier_module_before;
  mca_coll_base_module_ibarrier_fn_t ibarrier_before;
  mca_coll_base_module_t* ibarrier_module_before;
  mca_coll_base_module_allreduce_fn_t allreduce_before;
  mca_coll_base_module_t* allreduce_module_before;
  enum rio_coll_way way;
  rio_fi_group* group;     /**< null: none was begun. One that the members did not agree on stays,
                            *  to tell those that join late */
  opal_list_t waiting;     /**< its requests, in the order of their barriers */
  bool is_under_way;       /**< the member has arrived at the barrier of the first request */
  bool has_told_failure;   /**< the output has named the rank that failed */
  bool has_told_reduction; /**< the output has told that MPI_Allreduce failed at another rank */
  unsigned reductions;     /**< MPI_Allreduce of few bytes, before they are shown */
  uint32_t shown_most;     /**< bytes that the members show each other; 0: not known, or none */
  bool never_shows;        /**< the members cannot show bytes, or must not */
  unsigned meetings;       /**< blocking barriers of the group, and reductions by it */
  opal_list_item_t place;  /**< in the component's list, unless `waiting` is empty */
};
typedef struct coll_rio_module coll_rio_module_t;
OBJ_CLASS_DECLARATION(coll_rio_module_t);

/** A nonblocking or persistent barrier. */
struct coll_rio_request {
  ompi_request_t super;
  coll_rio_module_t* module;
  ompi_request_t* before; /**< the request of the module before, if that carries out the barrier */
};
typedef struct coll_rio_request coll_rio_request_t;
OBJ_CLASS_DECLARATION(coll_rio_request_t);

/** The component, and what all its modules share. */
struct coll_rio_component {
  mca_coll_base_component_t super;
  int priority;
  const struct rio_fi_barrier_calls* calls; /**< null: neither mtl/rio nor the provider is used */
  mtl_rio_exchange_fn_t exchange;           /**< null: mtl/rio does not carry the messages */
  opal_mutex_t lock;
  opal_list_t busy;  /**< modules with requests, by `place` */
  bool is_advancing; /**< under the lock: a module before may call opal_progress() in its barrier */
  opal_free_list_t requests;
  bool is_progressing; /**< coll_rio_progress() is registered with opal_progress() */
};
typedef struct coll_rio_component coll_rio_component_t;
__attribute__((visibility("default"))) extern coll_rio_component_t mca_coll_rio_component;

/** collm_comm_query: make a module for a communicator whose barriers a group may be able to
 *  carry out. @return null: there is none. */
mca_coll_base_module_t* coll_rio_query(ompi_communicator_t* comm, int* priority);
/** MPI_Allreduce of a communicator whose messages mtl/rio carries. */
int coll_rio_allreduce(const void* send, void* receive, int count, struct ompi_datatype_t* type,
                       struct ompi_op_t* op, ompi_communicator_t* comm,
                       mca_coll_base_module_t* super);
/** Find out whether the members of a communicator can show each other bytes: sets `shown_most` or
 *  `never_shows`, alike at all members. All call it at the same place among their collective calls:
 *  it is a reduction, and may be a barrier. @return MPI_SUCCESS, or the error of either. */
int coll_rio_find_shown_most(coll_rio_module_t* module);
/** Show bytes to all members, and wait until all have done so. @param count the same at all
 * members, at most what coll_rio_find_shown_most() has found. @param shown set by rank; valid until
 * the next collective call on the communicator. @return MPI_SUCCESS; MPI_ERR_TRUNCATE: the members
 * show different numbers of bytes; an error as MPI_Barrier has it. */
int coll_rio_show(coll_rio_module_t* module, const void* bytes, uint32_t count,
                  const uint8_t** shown);
/** Called by opal_progress(): advance the barriers of all communicators. @return how many ended. */
int coll_rio_progress(void);
/** Begin the group of a communicator.
 *  @return 0; -EINVAL: a member does not use the same mtl, as all members find; another -errno of
 *  rio_fi_barrier_calls::begin: this process cannot take part, and the others do not know. */
int coll_rio_begin(ompi_communicator_t* comm, rio_fi_group** out);
/** Whether this process has published a name that barriers find it by. */
bool coll_rio_has_name(void);
/** The mtl that carries the messages. @return null: it is not mtl/rio. */
const mtl_rio_component_t* coll_rio_own_mtl(void);

#endif
