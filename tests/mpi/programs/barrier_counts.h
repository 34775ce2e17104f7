/* Barriers of communicators whose members count, where all ranks see it, how many they have
 * entered: no rank may leave a barrier before all members have entered it. */
#ifndef RIO_TESTS_MPI_BARRIER_COUNTS_H
#define RIO_TESTS_MPI_BARRIER_COUNTS_H

#include "tests/mpi/programs/barrier_init.h"
#include "tests/mpi/programs/check.h"

enum { kGroups = 4, kRounds = 50, kAtOnce = 3 };

/* How many barriers of each communicator each rank has entered, where all ranks see it. */
static MPI_Win counts_win;

static inline unsigned* counts_of(int rank) {
  MPI_Aint bytes = 0;
  int unit = 0;
  unsigned* out = NULL;
  MPI_Win_shared_query(counts_win, rank, &bytes, &unit, &out);
  return out;
}

static inline void enter(int group) {
  __atomic_add_fetch(&counts_of(check_rank)[group], 1, __ATOMIC_RELEASE);
}

/* Fails unless all members have entered at least as many barriers as this rank wants. */
static inline void check_left(MPI_Comm comm, int group, unsigned wanted) {
  MPI_Group members;
  MPI_Group world;
  int size = 0;
  MPI_Comm_group(comm, &members);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(members, &size);
  for (int i = 0; i < size; ++i) {
    int rank = 0;
    MPI_Group_translate_ranks(members, 1, &i, world, &rank);
    const unsigned entered = __atomic_load_n(&counts_of(rank)[group], __ATOMIC_ACQUIRE);
    expect(entered >= wanted, 1, "all have entered", rank);
  }
  MPI_Group_free(&members);
  MPI_Group_free(&world);
}

static inline void blocking(MPI_Comm comm, int group, unsigned* done) {
  enter(group);
  MPI_Barrier(comm);
  check_left(comm, group, ++*done);
}

/* Several barriers of one communicator are under way, and so are those of another. */
static inline void at_once(MPI_Comm one, int group_of_one, unsigned* done_of_one, MPI_Comm two,
                           int group_of_two, unsigned* done_of_two) {
  MPI_Request requests[2 * kAtOnce];
  for (int i = 0; i < kAtOnce; ++i) {
    enter(group_of_one);
    MPI_Ibarrier(one, &requests[2 * i]);
    enter(group_of_two);
    MPI_Ibarrier(two, &requests[2 * i + 1]);
  }
  for (int i = 0; i < 2 * kAtOnce; ++i) {
    const int at = check_rank % 2 ? 2 * kAtOnce - 1 - i : i; /* not in the order of starts */
    MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
    unsigned* const done = at % 2 ? done_of_two : done_of_one;
    check_left(at % 2 ? two : one, at % 2 ? group_of_two : group_of_one,
               *done + (unsigned)at / 2 + 1);
  }
  *done_of_one += kAtOnce;
  *done_of_two += kAtOnce;
}

static inline void persistent(MPI_Comm comm, int group, unsigned* done) {
  MPI_Request request;
  barrier_init(comm, &request);
  for (int i = 0; i < kRounds; ++i) {
    enter(group);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_left(comm, group, ++*done);
  }
  MPI_Request_free(&request);
}

/* All ranks call it, before the first barrier. */
static inline void open_counts(void) {
  unsigned* own = NULL;
  MPI_Win_allocate_shared(kGroups * sizeof(unsigned), sizeof(unsigned), MPI_INFO_NULL,
                          MPI_COMM_WORLD, (void*)&own, &counts_win);
  for (int i = 0; i < kGroups; ++i) {
    own[i] = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

#endif
