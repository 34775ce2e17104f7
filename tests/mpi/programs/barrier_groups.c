/* Barriers of several communicators at once: duplicates, splits, many after one another, several
 * under way on one, a rank that is far ahead of the others, persistent ones, and with Open MPI 5
 * those that MPI_Comm_create_from_group() makes. No rank leaves a barrier before all members have
 * entered it. ranks: 2 4 7 */
#include <stdlib.h>

#include "tests/mpi/programs/barrier_init.h"
#include "tests/mpi/programs/check.h"

enum { kGroups = 6, kRounds = 50, kMany = 200, kAtOnce = 3, kAhead = 100 };

/* How many barriers of each communicator each rank has entered, where all ranks see it. */
static MPI_Win counts_win;

static unsigned* counts_of(int rank) {
  MPI_Aint bytes = 0;
  int unit = 0;
  unsigned* out = NULL;
  MPI_Win_shared_query(counts_win, rank, &bytes, &unit, &out);
  return out;
}

static void enter(int group) {
  __atomic_add_fetch(&counts_of(check_rank)[group], 1, __ATOMIC_RELEASE);
}

/* Checks that all members have entered at least as many barriers as this rank wants. */
static void check_left(MPI_Comm comm, int group, unsigned wanted) {
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

static void blocking(MPI_Comm comm, int group, unsigned* done) {
  enter(group);
  MPI_Barrier(comm);
  check_left(comm, group, ++*done);
}

/* Several barriers of one communicator are under way, and so are those of another. */
static void at_once(MPI_Comm one, int group_of_one, unsigned* done_of_one, MPI_Comm two,
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

static void persistent(MPI_Comm comm, int group, unsigned* done) {
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

#if OMPI_MAJOR_VERSION >= 5
static MPI_Comm from_group(MPI_Group group, const char* tag) {
  MPI_Comm out;
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &out);
  return out;
}

/* Communicators whose index differs between members, since rank 0 has one communicator more. */
static void from_groups(void) {
  MPI_Session session;
  MPI_Group all;
  MPI_Group alone;
  MPI_Comm more = MPI_COMM_NULL;
  unsigned done[2] = {0};
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Group_from_session_pset(session, "mpi://SELF", &alone);
  if (check_rank == 0) {
    more = from_group(alone, "more");
  }
  MPI_Comm one = from_group(all, "one");
  MPI_Comm two = from_group(all, "two");
  at_once(one, 4, &done[0], two, 5, &done[1]);
  blocking(two, 5, &done[1]);
  persistent(one, 4, &done[0]);
  if (check_rank == 0) {
    MPI_Comm_free(&more);
  }
  MPI_Comm_free(&one);
  MPI_Comm_free(&two);
  MPI_Group_free(&all);
  MPI_Group_free(&alone);
  MPI_Session_finalize(&session);
}
#endif

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned* own = NULL;
  MPI_Win_allocate_shared(kGroups * sizeof(unsigned), sizeof(unsigned), MPI_INFO_NULL,
                          MPI_COMM_WORLD, (void*)&own, &counts_win);
  for (int i = 0; i < kGroups; ++i) {
    own[i] = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
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
#if OMPI_MAJOR_VERSION >= 5
  from_groups();
#endif
  digest_long(done[0] + done[2] + done[3]);
  MPI_Comm_free(&twin);
  MPI_Comm_free(&half);
  MPI_Comm_free(&turned);
  MPI_Win_free(&counts_win);
  return end();
}
