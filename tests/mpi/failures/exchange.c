/* Ranks exchange short and long messages in a ring, for a number of turns: a job for
 * tests/mpi/failures/run to disturb. Rank 0 prints "begun" after the first turn, and "ended" at the
 * end.
 *
 *   mpirun -np N … exchange TURNS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLong = 100000, kTag = 3 };

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  static char out[kLong];
  static char in[kLong];
  const long turns = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long turn = 0; turn < turns; ++turn) {
    const int bytes = turn % 2 == 0 ? 8 : kLong;
    memset(out, (int)(turn + rank), (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, kTag, in, bytes, MPI_BYTE,
                 (rank + size - 1) % size, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const char wanted = (char)(turn + (rank + size - 1) % size);
    if (in[0] != wanted || in[bytes - 1] != wanted) {
      fprintf(stderr, "exchange: rank %d, turn %ld: wrong bytes\n", rank, turn);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
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
