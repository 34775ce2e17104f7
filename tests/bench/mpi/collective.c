/* Collective calls over all ranks; see mpi_sizes.c. */
#include "tests/bench/mpi/sizes.h"

static void allreduce(struct run* run) {
  MPI_Allreduce(run->out, run->in, run->bytes / (int)sizeof(int), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* From each rank in turn, so that none can run ahead. */
static void bcast(struct run* run) {
  for (int root = 0; root < run->ranks; ++root) {
    MPI_Bcast(run->out, run->bytes, MPI_CHAR, root, MPI_COMM_WORLD);
  }
}

static void alltoall(struct run* run) {
  MPI_Alltoall(run->out, run->bytes, MPI_CHAR, run->in, run->bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void barrier(struct run* run) {
  (void)run;
  MPI_Barrier(MPI_COMM_WORLD);
}

const struct test kCollective[] = {
    {"allreduce", allreduce, 1, kPerRound, sizeof(int), 0},
    {"bcast", bcast, 1, kPerRank, 1, 0},
    {"alltoall", alltoall, 1, kPerRound, 1, 0},
    {"barrier", barrier, 1, kPerRound, 1, 0},
    {NULL, NULL, 0, kPerRound, 0, 0},
};
