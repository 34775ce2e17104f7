/* Ranks meet in barriers, blocking and nonblocking in turn, while tests/mpi/failures/run disturbs
 * them. Rank 0 prints "begun" after the first one, and "ended" at the end. RANK_TO_ABORT
 * aborts instead of entering its second barrier, in which the others wait.
 *
 *   mpirun -np N … meet COUNT [RANK_TO_ABORT] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kAborted = 5 };

static void meet(long turn) {
  if (turn % 2 == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank = 0;
  const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  const long to_abort = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long turn = 0; turn < count; ++turn) {
    if (turn == 1 && rank == to_abort) {
      MPI_Abort(MPI_COMM_WORLD, kAborted);
    }
    meet(turn);
    if (turn == 0 && rank == 0) {
      puts("begun");
      fflush(stdout);
    }
  }
  if (rank == 0) {
    puts("ended");
  }
  MPI_Finalize();
  return 0;
}
