/* Many ranks, for scripts/bench mpi.
 *
 *   mpirun -np N … mpi_ranks startup    MPI_Init, 10 allreduces of one int, MPI_Finalize
 *   mpirun -np N … mpi_ranks memory     MPI_Alltoall of 8 bytes, then each rank's Pss
 *
 * Rank 0 prints one JSON object: {"ranks": N} and for memory "pss_kib": [one of each rank]. Exit
 * code 1 if a sum is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kAllreduces = 10 };

/* Proportional memory of this process, KiB; -1 if the kernel does not tell. */
static long pss_kib(void) {
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  long kib = -1;
  while (file != NULL && kib < 0 && fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, "Pss:", 4) == 0) {
      kib = strtol(line + 4, NULL, 10);
    }
  }
  if (file != NULL) {
    fclose(file);
  }
  return kib;
}

static int sums_are_right(int ranks) {
  int right = 1;
  for (int i = 0; i < kAllreduces; ++i) {
    int sum = 0;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= sum == i * ranks;
  }
  return right;
}

static int startup(int rank, int ranks) {
  const int right = sums_are_right(ranks);
  if (rank == 0 && right) {
    printf("{\"ranks\": %d}\n", ranks);
  }
  return right ? 0 : 1;
}

static int memory(int rank, int ranks) {
  long* const out = calloc((size_t)ranks, sizeof(long));
  long* const in = calloc((size_t)ranks, sizeof(long));
  if (out == NULL || in == NULL) {
    return 1;
  }
  MPI_Alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const long own = pss_kib();
  /* A rank that leaves shares no pages any more: wait until all have measured. */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Gather(&own, 1, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"ranks\": %d, \"pss_kib\": [", ranks);
    for (int i = 0; i < ranks; ++i) {
      printf("%s%ld", i == 0 ? "" : ", ", in[i]);
    }
    printf("]}\n");
  }
  free(out);
  free(in);
  return 0;
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  int code = 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc == 2 && strcmp(argv[1], "startup") == 0) {
    code = startup(rank, ranks);
  } else if (argc == 2 && strcmp(argv[1], "memory") == 0) {
    code = memory(rank, ranks);
  } else if (rank == 0) {
    fprintf(stderr, "mpi_ranks: error: usage: mpirun … mpi_ranks startup|memory\n");
  }
  MPI_Finalize();
  return code;
}
