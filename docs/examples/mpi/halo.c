/* Heat on a plate: each rank has some rows, and swaps those at its edges with its neighbours in
 * each step. ranks: 2 4 8
 *
 * mpicc -O2 -o halo halo.c && scripts/mpirun-rio -np 4 ./halo
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSide = 240, kSteps = 100 };

static void swap_edges(double* rows, int mine, int up, int down) {
  MPI_Request requests[4];
  double* const last = rows + (size_t)mine * kSide;
  MPI_Irecv(rows, kSide, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(last + kSide, kSide, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(rows + kSide, kSide, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(last, kSide, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* Each point becomes the mean of its four neighbours. */
static void step(const double* from, double* to, int mine) {
  for (int y = 1; y <= mine; ++y) {
    for (int x = 1; x < kSide - 1; ++x) {
      const size_t at = (size_t)y * kSide + (size_t)x;
      to[at] = 0.25 * (from[at - 1] + from[at + 1] + from[at - kSide] + from[at + kSide]);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int mine = kSide / size;
  const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  double* now = calloc((size_t)(mine + 2) * kSide, sizeof(double));
  double* next = calloc((size_t)(mine + 2) * kSide, sizeof(double));
  for (int x = 0; x < kSide && rank == 0; ++x) {
    now[x] = next[x] = 100; /* the upper edge is hot, and stays so */
  }
  for (int i = 0; i < kSteps; ++i) {
    swap_edges(now, mine, up, down);
    step(now, next, mine);
    double* const other = now;
    now = next;
    next = other;
  }
  /* The plate, row by row: the same for any number of ranks. */
  double* plate = malloc(sizeof(double) * kSide * kSide);
  MPI_Gather(now + kSide, mine * kSide, MPI_DOUBLE, plate, mine * kSide, MPI_DOUBLE, 0,
             MPI_COMM_WORLD);
  double heat = 0;
  for (int i = 0; i < kSide * kSide && rank == 0; ++i) {
    heat += plate[i];
  }
  if (rank == 0) {
    printf("heat %.10f, in the middle of the first row %.10f\n", heat, plate[kSide / 2]);
  }
  free(plate);
  free(now);
  free(next);
  MPI_Finalize();
  return 0;
}
