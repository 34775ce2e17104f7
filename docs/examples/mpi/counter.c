/* A counter that all ranks share: each takes numbers until there are none. ranks: 2 4 8
 *
 * mpicc -O2 -o counter counter.c && scripts/mpirun-rio -np 4 ./counter
 */
#include <mpi.h>
#include <stdio.h>

enum { kNumbers = 500 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long* counter;
  MPI_Win win;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
  *counter = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const long one = 1;
  long taken[kNumbers] = {0}, all[kNumbers];
  MPI_Win_lock_all(0, win);
  for (;;) {
    long number;
    MPI_Fetch_and_op(&one, &number, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    if (number >= kNumbers) {
      break;
    }
    ++taken[number];
  }
  MPI_Win_unlock_all(win);
  MPI_Reduce(taken, all, kNumbers, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < kNumbers && rank == 0; ++i) {
    if (all[i] != 1) {
      fprintf(stderr, "number %d was taken %ld times\n", i, all[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (rank == 0) {
    printf("each of %d numbers was taken once\n", kNumbers);
  }
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
