/**
 * @file
 * Open MPI's component coll/rio: barriers of the provider rio in the place of those of the module
 * that a communicator had before.
 */
#ifndef COLL_RIO_H
#define COLL_RIO_H

#include <stdbool.h>

#include "lib/ofi/rio_fi_barrier.h"
#include "lib/ompi/compat.h"

/** How the barriers of a communicator are made. */
enum coll_rio_way {
  COLL_RIO_UNDECIDED, /**< its first barrier decides */
  COLL_RIO_JOINING,   /**< the members of its group are agreeing */
  COLL_RIO_GROUP,     /**< by its group */
  COLL_RIO_BEFORE,    /**< by the module before: the provider cannot reach all members */
};

/** A communicator with this component. All but `super` is guarded by the component's lock, unless
 *  `waiting` is empty: then it belongs to the thread that calls a barrier. */
struct coll_rio_module {
  mca_coll_base_module_t super;
  ompi_communicator_t* comm;
  mca_coll_base_module_barrier_fn_t barrier_before;
  mca_coll_base_module_t* barrier_module_before;
  mca_coll_base_module_ibarrier_fn_t ibarrier_before;
  mca_coll_base_module_t* ibarrier_module_before;
  enum coll_rio_way way;
  rio_fi_group* group;
  opal_list_t waiting;    /**< its requests in the order of their barriers */
  bool is_under_way;      /**< the member has arrived at the first one's barrier */
  bool has_told_failure;  /**< the user has seen which rank failed */
  opal_list_item_t place; /**< in the component's list, unless `waiting` is empty */
};
typedef struct coll_rio_module coll_rio_module_t;
OBJ_CLASS_DECLARATION(coll_rio_module_t);

/** A nonblocking or persistent barrier. */
struct coll_rio_request {
  ompi_request_t super;
  coll_rio_module_t* module;
  ompi_request_t* before; /**< its barrier, if the module before makes it */
};
typedef struct coll_rio_request coll_rio_request_t;
OBJ_CLASS_DECLARATION(coll_rio_request_t);

/** The component, and what all its modules share. */
struct coll_rio_component {
  mca_coll_base_component_t super;
  int priority;
  const struct rio_fi_barrier_calls* calls; /**< null: the provider is not loaded */
  opal_mutex_t lock;
  opal_list_t busy; /**< modules with requests, by `place` */
  opal_free_list_t requests;
  bool is_progressing; /**< its function is one of opal_progress() */
};
typedef struct coll_rio_component coll_rio_component_t;
__attribute__((visibility("default"))) extern coll_rio_component_t mca_coll_rio_component;

/** collm_comm_query: every communicator gets a module whose barriers the provider may be able to
 *  make. */
mca_coll_base_module_t* coll_rio_query(ompi_communicator_t* comm, int* priority);
/** A function of opal_progress(): advance the barriers of all communicators. @return how many
 *  ended. */
int coll_rio_progress(void);
/** Begin the group of a communicator.
 *  @return 0; another value: some member is not one of our provider, as all members find. */
int coll_rio_begin(ompi_communicator_t* comm, rio_fi_group** out);
/** Whether this process offers a name of our provider to others. */
bool coll_rio_has_name(void);

#endif
