/* Sums of few bytes, which the ranks of one machine show each other in memory from the ninth one of
 * a communicator on, among barriers that are under way. ranks: 2 3 4 5 */
#include "tests/mpi/programs/barrier_init.h"
#include "tests/mpi/programs/check.h"

enum { kNumbersMost = 130, kRounds = 60 };

/* Sums that are exact, so that their order does not show. */
static void sum(MPI_Comm comm, int round, int count, int in_place) {
  long out[kNumbersMost], in[kNumbersMost];
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < count; ++i) {
    out[i] = (long)(rank + 1) * (round + i);
    in[i] = in_place ? out[i] : -1;
  }
  MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, count, MPI_LONG, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) {
    expect(in[i], (long)size * (size + 1) / 2 * (round + i), "sum", i);
  }
  digest(in, sizeof(long) * (size_t)count);
}

static void sum_all(MPI_Comm comm) {
  const int counts[] = {1, 2, 3, 64, 65, kNumbersMost};
  for (int round = 0; round < kRounds; ++round) {
    sum(comm, round, counts[round % 6], round % 2);
    if (round % 7 == 0) {
      MPI_Barrier(comm);
    }
    if (round % 5 == 0) { /* the sums come after barriers that have not ended */
      MPI_Request barriers[2];
      MPI_Ibarrier(comm, &barriers[0]);
      MPI_Ibarrier(comm, &barriers[1]);
      sum(comm, round, 2, 0);
      MPI_Waitall(2, barriers, MPI_STATUSES_IGNORE);
    }
  }
}

/* A persistent barrier may begin before a sum at one rank, and behind it at another. */
static void sum_among_persistent(MPI_Comm comm) {
  MPI_Request barrier;
  barrier_init(comm, &barrier);
  for (int round = 0; round < 20; ++round) {
    const int begins = (check_rank + round) % 2;
    if (begins) {
      MPI_Start(&barrier);
    }
    sum(comm, round, 1, 0);
    if (!begins) {
      MPI_Start(&barrier);
    }
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&barrier);
  sum(comm, 3, 2, 1);
}

static int have_same_bits(double one, double other) {
  uint64_t bits[2];
  memcpy(&bits[0], &one, sizeof(one));
  memcpy(&bits[1], &other, sizeof(other));
  return bits[0] == bits[1];
}

/* Sums of the same numbers have the same bits, of messages and in memory. */
static void repeat_fractions(MPI_Comm comm) {
  double first = 0;
  for (int round = 0; round < 20; ++round) {
    const double own = 1.0 / (3 + check_rank * 7);
    double sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    first = round == 0 ? sum : first;
    if ((check_size & (check_size - 1)) == 0) {
      expect(have_same_bits(first, sum), 1, "sum of the same numbers", round);
    }
  }
}

/* All ranks have the same bits, whatever the order of the parts. */
static void sum_fractions(MPI_Comm comm) {
  for (int round = 0; round < kRounds; ++round) {
    const double own = 1.0 / (3 + check_rank * 7 + round);
    double sums[2] = {0, 0};
    MPI_Allreduce(&own, &sums[0], 1, MPI_DOUBLE, MPI_SUM, comm);
    sums[1] = sums[0];
    MPI_Bcast(&sums[1], 1, MPI_DOUBLE, 0, comm);
    expect(have_same_bits(sums[0], sums[1]), 1, "sum of two ranks", round);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm copy, half;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half);
  for (int i = 0; i < kRounds; ++i) { /* sums of two communicators in turn */
    sum(MPI_COMM_WORLD, i, 1 + i % 3, 0);
    sum(copy, i, 1 + i % 5, 1);
  }
  sum_all(copy);
  sum_all(half);
  sum_fractions(copy);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  repeat_fractions(other);
  sum_among_persistent(copy);
  sum_among_persistent(other);
  MPI_Comm_free(&other);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  return end();
}
