/* Communicators with barriers come and go in any order: freed before their first barrier, during
 * barriers, with other traffic under way, or left for MPI_Finalize; persistent barriers, too.
 * ranks: 2 4 7 */
#include <stdlib.h>

#include "tests/mpi/programs/barrier_init.h"
#include "tests/mpi/programs/check.h"

enum { kRounds = 20, kTag = 5, kBytes = 100000 };

/* A long message to the next rank and one from the rank before, under way until end_traffic(). */
struct traffic {
  MPI_Request requests[2];
  unsigned char* in;
  unsigned char* out;
  int round;
};

static void begin_traffic(struct traffic* own, int round) {
  const int next = (check_rank + 1) % check_size;
  const int before = (check_rank + check_size - 1) % check_size;
  own->round = round;
  own->in = malloc(kBytes);
  own->out = malloc(kBytes);
  fill(own->out, kBytes, check_rank, round);
  MPI_Irecv(own->in, kBytes, MPI_BYTE, before, kTag, MPI_COMM_WORLD, &own->requests[0]);
  MPI_Isend(own->out, kBytes, MPI_BYTE, next, kTag, MPI_COMM_WORLD, &own->requests[1]);
}

static void end_traffic(struct traffic* own) {
  MPI_Waitall(2, own->requests, MPI_STATUSES_IGNORE);
  expect_bytes(own->in, kBytes, (check_rank + check_size - 1) % check_size, own->round);
  free(own->in);
  free(own->out);
}

/* Waits for a word that the late rank sends to each other before it enters the round's barrier. */
static void be_late(int round) {
  int word = round;
  if (check_rank != round % check_size) {
    MPI_Recv(&word, 1, MPI_INT, round % check_size, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(word, round, "word", round);
    return;
  }
  for (int i = 0; i < check_size; ++i) {
    if (i != check_rank) {
      MPI_Send(&word, 1, MPI_INT, i, kTag + 1, MPI_COMM_WORLD);
    }
  }
}

/* Freed while its nonblocking barrier is under way: a rank arrives only after the others have freed
 * theirs. */
static void free_during(int round) {
  struct traffic traffic;
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (round % 2) {
    MPI_Barrier(comm);
  }
  begin_traffic(&traffic, round);
  if (check_rank == round % check_size) {
    be_late(round);
    MPI_Ibarrier(comm, &request);
    MPI_Comm_free(&comm);
  } else {
    MPI_Ibarrier(comm, &request);
    MPI_Comm_free(&comm);
    be_late(round);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end_traffic(&traffic);
}

/* Freed without a barrier, and after some, while messages are under way. */
static void free_before_and_after(int round) {
  struct traffic traffic;
  MPI_Comm never;
  MPI_Comm often;
  begin_traffic(&traffic, round);
  MPI_Comm_dup(MPI_COMM_WORLD, &never);
  MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &often);
  for (int i = 0; i < round; ++i) {
    MPI_Barrier(often);
  }
  if (round % 2) {
    MPI_Comm_free(&never);
    MPI_Comm_free(&often);
    end_traffic(&traffic);
  } else {
    end_traffic(&traffic);
    MPI_Comm_free(&often);
    MPI_Comm_free(&never);
  }
}

/* Freed while a persistent barrier is active; its request lives on. */
static void free_below_persistent(int round) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  barrier_init(comm, &request);
  for (int i = 0; i < round; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Start(&request);
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

/* Left for MPI_Finalize. */
static void leave(void) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* without a barrier */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &comm);
  MPI_Barrier(comm);
  barrier_init(comm, &request); /* never started */
  MPI_Comm_dup(comm, &comm);
  barrier_init(comm, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm); /* its request is left */
  barrier_init(MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int i = 0; i < kRounds; ++i) {
    free_before_and_after(i);
    free_during(i);
    free_below_persistent(i);
  }
  leave();
  return end();
}
