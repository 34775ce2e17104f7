#include <errno.h>
#include <sched.h>
#include <string.h>

#include <opal/util/output.h>
#include "lib/ompi/coll_rio.h"

static const struct rio_fi_barrier_calls* calls(void) {
  return mca_coll_rio_component.calls;
}

/* Tells the user once which rank failed. @param rc of the group. @return MPI's error for it. */
static int mpi_error(coll_rio_module_t* module, int rc) {
  if (rc == 0) {
    return MPI_SUCCESS;
  }
  if (!module->has_told_failure) {
    module->has_told_failure = true;
    const int64_t rank = calls()->failed_rank(module->group);
    if (rank >= 0) {
      opal_output(0, "coll:rio: rank %d of communicator %s has gone, so its barriers fail",
                  (int)rank, module->comm->c_name);
    }
  }
  return COLL_RIO_ERR_FAILED;
}

/* Begins the group of a communicator. @return the way of its barriers. */
static enum rio_coll_way begin(coll_rio_module_t* module) {
  const int rc = coll_rio_begin(module->comm, &module->group);
  if (rc == 0) {
    return RIO_COLL_JOINING;
  }
  if (rc == -EINVAL) { /* because of the names, which are the same at all members */
    return RIO_COLL_BEFORE;
  }
  opal_output(0,
              "coll:rio: this rank cannot take part in barriers of communicator %s: %s; mpirun-rio "
              "--no-barrier leaves them to Open MPI",
              module->comm->c_name, strerror(-rc));
  return RIO_COLL_FAILED;
}

/* Chooses what carries out a communicator's barriers. @return whether that is known. */
static bool has_way(coll_rio_module_t* module) {
  if (module->way == RIO_COLL_UNDECIDED) {
    module->way = begin(module);
  }
  if (module->way == RIO_COLL_JOINING) {
    const int rc = calls()->ready(module->group);
    if (rc != -EAGAIN) {
      module->way = rc == 0 ? RIO_COLL_GROUP : RIO_COLL_BEFORE;
    }
  }
  return module->way != RIO_COLL_JOINING;
}

/* Advances a barrier of the module before. @return whether it has ended; then the status is set. */
static bool advance_before(coll_rio_module_t* module, coll_rio_request_t* request) {
  int rc = MPI_SUCCESS;
  if (request->before == NULL) {
    rc = module->ibarrier_before(module->comm, &request->before, module->ibarrier_module_before);
    if (rc != OMPI_SUCCESS) {
      request->super.req_status.MPI_ERROR = rc;
      return true;
    }
  }
  if (!REQUEST_COMPLETE(request->before)) {
    return false;
  }
  request->super.req_status.MPI_ERROR = request->before->req_status.MPI_ERROR;
  ompi_request_free(&request->before);
  request->before = NULL;
  return true;
}

/* Advances a barrier of the group. @return whether it has ended; then the status is set. */
static bool advance_group(coll_rio_module_t* module, coll_rio_request_t* request) {
  int rc = 0;
  if (!module->is_under_way) {
    rc = calls()->arrive(module->group, NULL, 0);
    module->is_under_way = rc == 0;
  }
  if (rc == 0) {
    rc = calls()->test(module->group);
  }
  if (rc == -EAGAIN) {
    return false;
  }
  module->is_under_way = false;
  request->super.req_status.MPI_ERROR = mpi_error(module, rc);
  return true;
}

/* Advances a barrier in the way that was chosen. @return as advance_group(). */
static bool advance_by(coll_rio_module_t* module, coll_rio_request_t* request) {
  if (module->way == RIO_COLL_FAILED) {
    request->super.req_status.MPI_ERROR = COLL_RIO_ERR_FAILED;
    return true;
  }
  return module->way == RIO_COLL_GROUP ? advance_group(module, request)
                                       : advance_before(module, request);
}

/* Advances the first request of a module, under the lock. @return that request, if it has ended and
 * left the list; null: it has not ended. */
static coll_rio_request_t* advance(coll_rio_module_t* module) {
  coll_rio_request_t* const request = (coll_rio_request_t*)opal_list_get_first(&module->waiting);
  if (!has_way(module) || !advance_by(module, request)) {
    return NULL;
  }
  opal_list_remove_first(&module->waiting);
  if (opal_list_is_empty(&module->waiting)) {
    opal_list_remove_item(&mca_coll_rio_component.busy, &module->place);
  }
  return request;
}

/* Under the lock. */
static coll_rio_request_t* next_ended(void) {
  opal_list_item_t* item = NULL;
  OPAL_LIST_FOREACH(item, &mca_coll_rio_component.busy, opal_list_item_t) {
    coll_rio_module_t* const module =
        (coll_rio_module_t*)((char*)item - offsetof(coll_rio_module_t, place));
    coll_rio_request_t* const request = advance(module);
    if (request != NULL) {
      return request;
    }
  }
  return NULL;
}

int coll_rio_progress(void) {
  coll_rio_component_t* const own = &mca_coll_rio_component;
  int ended = 0;
  while (!opal_list_is_empty(&own->busy) && OPAL_THREAD_TRYLOCK(&own->lock) == 0) {
    coll_rio_request_t* request = NULL;
    if (!own->is_advancing) { /* without threads the lock does nothing */
      own->is_advancing = true;
      request = next_ended();
      own->is_advancing = false;
    }
    OPAL_THREAD_UNLOCK(&own->lock);
    if (request == NULL) {
      break;
    }
    /* Without the lock: the callback of the request may begin another barrier. */
    ompi_request_complete(&request->super, true);
    ++ended;
  }
  return ended;
}

static int start_request(coll_rio_request_t* request) {
  coll_rio_component_t* const own = &mca_coll_rio_component;
  coll_rio_module_t* const module = request->module;
  request->super.req_state = OMPI_REQUEST_ACTIVE;
  request->super.req_complete = REQUEST_PENDING;
  request->super.req_status.MPI_ERROR = MPI_SUCCESS;
  OPAL_THREAD_LOCK(&own->lock);
  if (opal_list_is_empty(&module->waiting)) {
    opal_list_append(&own->busy, &module->place);
  }
  opal_list_append(&module->waiting, &request->super.super.super);
  OPAL_THREAD_UNLOCK(&own->lock);
  coll_rio_progress(); /* arrives, so that the caller may compute for as long as it likes */
  return OMPI_SUCCESS;
}

static int start_requests(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    start_request((coll_rio_request_t*)requests[i]);
  }
  return MPI_SUCCESS;
}

static int free_request(ompi_request_t** request) {
  if (!REQUEST_COMPLETE(*request)) {
    return MPI_ERR_REQUEST;
  }
  ompi_communicator_t* comm = ((coll_rio_request_t*)*request)->module->comm;
  OMPI_REQUEST_FINI(*request);
  opal_free_list_return(&mca_coll_rio_component.requests, (opal_free_list_item_t*)*request);
  *request = MPI_REQUEST_NULL;
  OBJ_RELEASE(comm);
  return MPI_SUCCESS;
}

static coll_rio_request_t* new_request(coll_rio_module_t* module, bool is_persistent) {
  coll_rio_request_t* const request =
      (coll_rio_request_t*)opal_free_list_get(&mca_coll_rio_component.requests);
  if (request != NULL) {
    OMPI_REQUEST_INIT(&request->super, is_persistent);
    request->super.req_mpi_object.comm = module->comm;
    OBJ_RETAIN(module->comm); /* so MPI_Comm_free() leaves it to its last request */
    request->module = module;
    request->before = NULL;
  }
  return request;
}

static int ibarrier(ompi_communicator_t* comm, ompi_request_t** out,
                    mca_coll_base_module_t* super) {
  (void)comm;
  coll_rio_request_t* const request = new_request((coll_rio_module_t*)super, false);
  if (request == NULL) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  *out = &request->super;
  return start_request(request);
}

static int barrier_init(ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** out,
                        mca_coll_base_module_t* super) {
  (void)comm;
  (void)info;
  coll_rio_request_t* const request = new_request((coll_rio_module_t*)super, true);
  if (request == NULL) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  /* Ranks may start it in another order than other collective calls. */
  ((coll_rio_module_t*)super)->never_shows = true;
  *out = &request->super;
  return OMPI_SUCCESS;
}

/* A blocking barrier while `way` is not decided, or behind nonblocking ones: a request and a wait.
 */
static int barrier_slow(ompi_communicator_t* comm, coll_rio_module_t* module) {
  ompi_request_t* request = NULL;
  int rc = ibarrier(comm, &request, &module->super);
  if (rc == OMPI_SUCCESS) {
    /* The members agree by the first messages between their cards, which threads of the wire
     * connect. Without the core each of their steps would wait for the end of a time slice. */
    while (module->way == RIO_COLL_JOINING && !REQUEST_COMPLETE(request)) {
      sched_yield();
      opal_progress();
    }
    ompi_request_wait_completion(request);
    rc = request->req_status.MPI_ERROR;
    ompi_request_free(&request);
  }
  return rc;
}

/* Polls until the barrier has ended; other traffic goes on meanwhile. Each test makes progress of
 * the port. */
static int wait_for_others(rio_fi_group* group) {
  unsigned tests = 1;
  int rc = calls()->test(group);
  for (; rc == -EAGAIN; ++tests) {
    if (rio_is_progress_due(tests)) {
      opal_progress();
    }
    rc = calls()->test(group);
  }
  return rc;
}

/* Arrives at a barrier of the group, and waits for its end. @param shows as for
 * rio_fi_barrier_calls::arrive. @return 0, or the error of arrive() or test(). */
static int meet(coll_rio_module_t* module, const void* shows, uint32_t bytes) {
  enum { kProgressEvery = 16 }; /* a member that is always the last one serves others, too */
  if (++module->meetings % kProgressEvery == 0) {
    opal_progress();
  }
  const int rc = calls()->arrive(module->group, shows, bytes);
  return rc == 0 ? wait_for_others(module->group) : rc;
}

static int barrier(ompi_communicator_t* comm, mca_coll_base_module_t* super) {
  coll_rio_module_t* const module = (coll_rio_module_t*)super;
  if (module->way != RIO_COLL_GROUP || !opal_list_is_empty(&module->waiting)) {
    return module->way == RIO_COLL_BEFORE && opal_list_is_empty(&module->waiting)
               ? module->barrier_before(comm, module->barrier_module_before)
               : barrier_slow(comm, module);
  }
  return mpi_error(module, meet(module, NULL, 0));
}

/* Begins the group, if that was not done. @return whether the members may meet by it. */
static bool may_meet(coll_rio_module_t* module) {
  OPAL_THREAD_LOCK(&mca_coll_rio_component.lock);
  if (module->way == RIO_COLL_UNDECIDED) {
    module->way = begin(module);
  }
  const bool may = module->way == RIO_COLL_JOINING || module->way == RIO_COLL_GROUP;
  OPAL_THREAD_UNLOCK(&mca_coll_rio_component.lock);
  return may;
}

int coll_rio_find_shown_most(coll_rio_module_t* module) {
  ompi_communicator_t* const comm = module->comm;
  const int may = !ompi_group_have_remote_peers(comm->c_local_group) && may_meet(module);
  int all_may = 0;
  int rc = module->allreduce_before(&may, &all_may, 1, MPI_INT, MPI_LAND, comm,
                                    module->allreduce_module_before);
  if (rc == MPI_SUCCESS && all_may) {
    rc = barrier(comm, &module->super); /* the members agree on what carries it */
  }
  if (rc == MPI_SUCCESS && all_may && module->way == RIO_COLL_GROUP) {
    module->shown_most = calls()->shown_most(module->group);
  }
  module->never_shows = rc == MPI_SUCCESS && module->shown_most == 0;
  return rc;
}

int coll_rio_show(coll_rio_module_t* module, const void* bytes, uint32_t count,
                  const uint8_t** shown) {
  while (!opal_list_is_empty(&module->waiting)) {
    opal_progress(); /* all members have begun these barriers before */
  }
  const int rc = meet(module, bytes, count);
  for (int rank = 0; rc == 0 && rank < ompi_comm_size(module->comm); ++rank) {
    shown[rank] = calls()->shown(module->group, (uint32_t)rank, count);
    if (shown[rank] == NULL) {
      return MPI_ERR_TRUNCATE; /* all ranks find that the lengths differ */
    }
  }
  return mpi_error(module, rc);
}

static int enable(mca_coll_base_module_t* super, ompi_communicator_t* comm) {
  coll_rio_module_t* const module = (coll_rio_module_t*)super;
  const mca_coll_base_comm_coll_t* const before = comm->c_coll;
  if (before->coll_barrier == NULL || before->coll_ibarrier == NULL ||
      before->coll_allreduce == NULL || before->coll_reduce_local == NULL) {
    return OMPI_ERR_NOT_AVAILABLE;
  }
  module->comm = comm;
  module->barrier_before = before->coll_barrier;
  module->barrier_module_before = before->coll_barrier_module;
  module->ibarrier_before = before->coll_ibarrier;
  module->ibarrier_module_before = before->coll_ibarrier_module;
  OBJ_RETAIN(module->barrier_module_before);
  OBJ_RETAIN(module->ibarrier_module_before);
  module->allreduce_before = before->coll_allreduce;
  module->allreduce_module_before = before->coll_allreduce_module;
  OBJ_RETAIN(module->allreduce_module_before);
  return OMPI_SUCCESS;
}

static void construct_module(coll_rio_module_t* module) {
  module->super.coll_module_enable = enable;
  module->super.coll_barrier = barrier;
  module->super.coll_ibarrier = ibarrier;
  module->super.coll_barrier_init = barrier_init;
  if (mca_coll_rio_component.exchange != NULL) {
    module->super.coll_allreduce = coll_rio_allreduce;
  }
  module->comm = NULL;
  module->barrier_module_before = NULL;
  module->ibarrier_module_before = NULL;
  module->way = RIO_COLL_UNDECIDED;
  module->group = NULL;
  module->is_under_way = false;
  module->has_told_failure = false;
  module->has_told_reduction = false;
  module->reductions = 0;
  module->shown_most = 0;
  module->never_shows = false;
  module->meetings = 0;
  OBJ_CONSTRUCT(&module->waiting, opal_list_t);
  OBJ_CONSTRUCT(&module->place, opal_list_item_t);
}

static void destruct_module(coll_rio_module_t* module) {
  if (module->group != NULL) {
    calls()->end(module->group);
  }
  if (module->barrier_module_before != NULL) {
    OBJ_RELEASE(module->barrier_module_before);
    OBJ_RELEASE(module->ibarrier_module_before);
    OBJ_RELEASE(module->allreduce_module_before);
  }
  OBJ_DESTRUCT(&module->place);
  OBJ_DESTRUCT(&module->waiting);
}

OBJ_CLASS_INSTANCE(coll_rio_module_t, mca_coll_base_module_t, construct_module, destruct_module);

static void construct_request(coll_rio_request_t* request) {
  request->super.req_type = OMPI_REQUEST_COLL;
  request->super.req_status._cancelled = 0;
  request->super.req_start = start_requests;
  request->super.req_free = free_request;
  request->super.req_cancel = NULL;
}

OBJ_CLASS_INSTANCE(coll_rio_request_t, ompi_request_t, construct_request, NULL);
