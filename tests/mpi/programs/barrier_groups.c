/* Barriers of several communicators at once: duplicates, splits, many after one another, several
 * under way on one, a rank that is far ahead of the others, and persistent ones. No rank leaves a
 * barrier before all members have entered it. ranks: 2 4 7 */
#include <stdlib.h>

#include "tests/mpi/programs/barrier_counts.h"
#include "tests/mpi/programs/check.h"

enum { kMany = 200, kAhead = 100 };

/* One rank is in barriers of more communicators than the others keep in mind. */
static void ahead_of_all(int rank) {
  MPI_Comm comms[kAhead];
  MPI_Request requests[kAhead];
  int word = rank;
  for (int i = 0; i < kAhead; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  if (check_rank != rank) {
    MPI_Recv(&word, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < kAhead; ++i) {
    MPI_Ibarrier(comms[i], &requests[i]);
  }
  for (int i = 0; i < check_size && check_rank == rank; ++i) {
    if (i != rank) {
      MPI_Send(&word, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    }
  }
  MPI_Waitall(kAhead, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kAhead; ++i) {
    MPI_Comm_free(&comms[i]);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  open_counts();
  MPI_Comm twin;
  MPI_Comm half;
  MPI_Comm turned;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &turned);
  unsigned done[kGroups] = {0};
  /* A communicator whose first barrier is a nonblocking one. */
  at_once(twin, 0, &done[0], half, 1, &done[1]);
  for (int i = 0; i < kRounds; ++i) {
    blocking(half, 1, &done[1]);
    blocking(twin, 0, &done[0]);
    at_once(turned, 2, &done[2], half, 1, &done[1]);
  }
  persistent(turned, 2, &done[2]);
  /* More communicators than a card has groups, each with few barriers, freed at once. */
  for (int i = 0; i < kMany; ++i) {
    MPI_Comm brief;
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank % (i + 1), &brief);
    if (i % 3) {
      blocking(brief, 3, &done[3]);
    }
    MPI_Comm_free(&brief);
  }
  ahead_of_all(0);
  ahead_of_all(check_size - 1);
  digest_long(done[0] + done[2] + done[3]);
  MPI_Comm_free(&twin);
  MPI_Comm_free(&half);
  MPI_Comm_free(&turned);
  MPI_Win_free(&counts_win);
  return end();
}
