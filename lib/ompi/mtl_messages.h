/**
 * @file
 * How the messages of mtl/rio name peers and communicators; for its sources.
 */
#ifndef MTL_RIO_MESSAGES_H
#define MTL_RIO_MESSAGES_H

#include "lib/ompi/mtl_rio.h"

static inline rio_mtl* mtl_rio_core(void) {
  return mca_mtl_rio_component.core;
}

/** The address of a rank that has not been met. @return RIO_MTL_ANY_SOURCE: it cannot be reached.
 */
uint32_t mtl_rio_meet_peer(struct ompi_proc_t* proc);

/** The address of a rank. @return RIO_MTL_ANY_SOURCE: it cannot be reached. */
static inline uint32_t mtl_rio_peer_of(struct ompi_communicator_t* comm, int rank) {
  struct ompi_proc_t* const proc = ompi_comm_peer_lookup(comm, rank);
  void* const endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
  return OPAL_LIKELY(endpoint != NULL) ? (uint32_t)(uintptr_t)endpoint : mtl_rio_meet_peer(proc);
}

/** The match bits of a message. @param rank of its sender. */
static inline uint64_t mtl_rio_bits_of(struct ompi_communicator_t* comm, int rank, int tag) {
  return ((uint64_t)mtl_rio_index(comm) << kMtlRioIndexBits | (uint16_t)rank) << kMtlRioTagBits |
         (uint32_t)tag;
}

#endif
