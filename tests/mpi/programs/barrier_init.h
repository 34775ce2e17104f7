/* Persistent barriers, by the name that the installed Open MPI has for them. */
#ifndef RIO_TESTS_MPI_BARRIER_INIT_H
#define RIO_TESTS_MPI_BARRIER_INIT_H

#include <mpi.h>
#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif

static inline void barrier_init(MPI_Comm comm, MPI_Request* request) {
#if OMPI_MAJOR_VERSION < 5
  MPIX_Barrier_init(comm, MPI_INFO_NULL, request);
#else
  MPI_Barrier_init(comm, MPI_INFO_NULL, request);
#endif
}

#endif
