/**
 * @file
 * What the sources of mtl/rio share: how messages name peers and communicators, and short sends.
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

/** The messages that a receive or a probe asks for. */
struct mtl_rio_wanted {
  uint64_t bits;
  uint64_t ignore;
  uint32_t source;
};

/** @param rank of the sender, or MPI_ANY_SOURCE. @return OMPI_SUCCESS; OMPI_ERR_UNREACH. */
static inline int mtl_rio_want(struct ompi_communicator_t* comm, int rank, int tag,
                               struct mtl_rio_wanted* out) {
  const uint64_t any_rank = UINT64_C(0xFFFF) << kMtlRioTagBits;
  const bool is_any = rank == MPI_ANY_SOURCE;
  out->bits = mtl_rio_bits_of(comm, is_any ? 0 : rank, tag == MPI_ANY_TAG ? 0 : tag);
  out->ignore = (is_any ? any_rank : 0) | (tag == MPI_ANY_TAG ? INT32_MAX : 0);
  out->source = is_any ? RIO_MTL_ANY_SOURCE : mtl_rio_peer_of(comm, rank);
  return OPAL_LIKELY(is_any || out->source != RIO_MTL_ANY_SOURCE) ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

/** Send a message of up to RIO_MTL_COPIED_MOST bytes. Waits for its receiver only until that has
 *  answered for the first time: it may be outside of MPI. @return OMPI_SUCCESS; OMPI_ERROR. */
int mtl_rio_send_short(uint32_t to, uint64_t bits, const void* data, size_t bytes);

/** Let messages of contiguous memory pass by the requests of pml `cm`, if that is chosen. For
 *  mtl_component.c, between mtl_rio_open_plain() and mtl_rio_close_plain(). */
void mtl_rio_take_plain(void);
int mtl_rio_open_plain(void); /**< @return OMPI_SUCCESS, or OMPI_ERR_OUT_OF_RESOURCE */
void mtl_rio_close_plain(void);

#endif
