/**
 * @file
 * Open MPI's internal headers that both components need, and all that differs between 4.1 and 5.0.
 */
#ifndef COLL_RIO_COMPAT_H
#define COLL_RIO_COMPAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <ompi_config.h>

#include <ompi/communicator/communicator.h>
#include <ompi/mca/coll/coll.h>
#include <ompi/request/request.h>
#include <ompi/win/win.h>
#include <opal/class/opal_free_list.h>
#include <opal/class/opal_list.h>
#include <opal/runtime/opal_progress.h>

#if OMPI_MAJOR_VERSION < 5
#include <opal/mca/pmix/pmix.h>
#include <opal/threads/mutex.h>
#else
#include <ompi/runtime/params.h>
#include <opal/mca/accelerator/base/base.h>
#include <opal/mca/pmix/pmix-internal.h>
#include <opal/mca/threads/mutex.h>
#endif

/** The first fields of the component's description. */
#if OMPI_MAJOR_VERSION < 5
#define COLL_RIO_VERSION MCA_COLL_BASE_VERSION_2_0_0
#else
#define COLL_RIO_VERSION MCA_COLL_BASE_VERSION_2_4_0
#endif

/** Name and version in the description of each component. */
#define RIO_COMPONENT_NAME     \
  .mca_component_name = "rio", \
  MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)

/** The readers of data that a process publishes: all processes. */
#if OMPI_MAJOR_VERSION < 5
#define MTL_RIO_GLOBAL OPAL_PMIX_GLOBAL
#else
#define MTL_RIO_GLOBAL PMIX_GLOBAL
#endif

/** A number that opal_thread_add_fetch_32() changes. */
#if OMPI_MAJOR_VERSION < 5
typedef volatile int32_t rio_atomic_int32_t;
#else
typedef opal_atomic_int32_t rio_atomic_int32_t;
#endif

/** The error of a barrier with a member that has failed. */
#if OMPI_MAJOR_VERSION < 5
#define COLL_RIO_ERR_FAILED MPI_ERR_OTHER
#else
#define COLL_RIO_ERR_FAILED MPI_ERR_PROC_FAILED
#endif

/** The parameters of an mtl's initialization. 5.0 also asks whether the component itself reads and
 *  writes memory of accelerators; mtl/rio does not, so Open MPI copies such data. */
#if OMPI_MAJOR_VERSION < 5
#define MTL_RIO_INIT_PARAMETERS bool progress_threads, bool threads
#define MTL_RIO_REFUSE_ACCELERATORS() ((void)0)
#else
#define MTL_RIO_INIT_PARAMETERS bool progress_threads, bool threads, bool *accelerators
#define MTL_RIO_REFUSE_ACCELERATORS() ((void)(*accelerators = false))
#endif

/** Whether all messages lie in the memory of this machine's processors, and requests need not be
 *  found by what watches for failed ranks. */
static inline bool mtl_rio_may_take_plain(void) {
#if OMPI_MAJOR_VERSION < 5
  return OPAL_CUDA_SUPPORT == 0;
#else
#if OPAL_ENABLE_FT_MPI
  if (ompi_ftmpi_enabled) {
    return false;
  }
#endif
  const char* const accelerator =
      opal_accelerator_base_selected_component.base_version.mca_component_name;
  return strcmp(accelerator, "null") == 0;
#endif
}

/** Whether this process has opened a window, onto which peers read and write by transports that
 * only opal_progress() serves. */
static inline bool rio_has_windows(void) {
  enum { kOfNone = 1 }; /* MPI_WIN_NULL */
  return ompi_mpi_windows.size - ompi_mpi_windows.number_free > kOfNone;
}

/** Whether a wait shall call opal_progress(), which is less urgent than its own looks for a
 *  message: at each 16th look. At each second look if this process has windows, so that its peers'
 *  accesses do not wait. Also if Open MPI was told that there are more ranks than cores: then
 *  opal_progress() yields, and a look in vain delays a rank that has to send.
 * Any thread. @param looks how many looks this wait has made. */
static inline bool rio_is_progress_due(unsigned looks) {
  enum { kLooks = 16, kLooksOfOthers = 2 }; /* powers of two */
  const bool others_wait = opal_progress_yield_when_idle || rio_has_windows();
  return (looks & (others_wait ? kLooksOfOthers - 1 : kLooks - 1)) == 0;
}

/** @return a number that all members of the communicator compute alike, and that no other living
 *  communicator of a member has. */
static inline uint64_t coll_rio_key(ompi_communicator_t* comm) {
#if OMPI_MAJOR_VERSION < 5
  return ompi_comm_get_cid(comm);
#else
  /* All members have the same index, unless the communicator, or one that it descends from, was
   * made by MPI_Comm_create_from_group(): then they have the same extended id. Its parts are PMIx's
   * id of the group and a number within it, each below 2^32. */
  if (OMPI_COMM_IS_GLOBAL_INDEX(comm)) {
    return ompi_comm_get_local_cid(comm);
  }
  const ompi_comm_extended_cid_t id = ompi_comm_get_extended_cid(comm);
  return (UINT64_C(1) << 63) | (id.cid_base << 32 ^ id.cid_sub.u64);
#endif
}

/** @return the index of a communicator, the same at all its members unless it, or one that it
 *  descends from, was made by MPI_Comm_create_from_group(), which mtl/rio does not offer. */
static inline uint32_t mtl_rio_index(ompi_communicator_t* comm) {
#if OMPI_MAJOR_VERSION < 5
  return comm->c_contextid;
#else
  return ompi_comm_get_local_cid(comm);
#endif
}

#endif
