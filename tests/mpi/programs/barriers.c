/* Barriers, blocking and not: no rank leaves one before all have entered it. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kRounds = 200 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int i = 0; i < kRounds; ++i) {
    /* The late rank sends a word before it enters; after the barrier the word must be there. */
    const int late = i % check_size;
    MPI_Request request;
    int word = -1;
    if (check_rank == (late + 1) % check_size) {
      MPI_Irecv(&word, 1, MPI_INT, late, 1, MPI_COMM_WORLD, &request);
    }
    if (check_rank == late) {
      MPI_Ssend(&i, 1, MPI_INT, (late + 1) % check_size, 1, MPI_COMM_WORLD);
    }
    if (i % 2) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Request barrier;
      MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
      MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    }
    if (check_rank == (late + 1) % check_size) {
      int done = 0;
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      expect(word, i, "word", i);
      digest_long(word);
    }
  }
  return end();
}
