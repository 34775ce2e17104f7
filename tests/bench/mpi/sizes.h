/* The tests of mpi_sizes: a round of each, and what its time is divided by. */
#ifndef RIO_TESTS_BENCH_MPI_SIZES_H
#define RIO_TESTS_BENCH_MPI_SIZES_H

#include "tests/bench/mpi/bench.h"

enum { kWindow = 64, kBytesMax = 4 << 20, kRoundsMax = 1 << 24 };

/* A rank's part in all rounds of a size. */
struct run {
  int rank;
  int ranks;
  int peer;  /* the first half of the ranks send, each to one of the second half */
  int sends; /* whether this rank is of the first half */
  int bytes;
  char* out; /* as in, kBytesMax for each rank */
  char* in;
  char* shown;    /* what the window shows, kBytesMax */
  MPI_Win window; /* for the tests of one side; MPI_WIN_NULL before the first one */
  MPI_Request requests[2 * kWindow];
};

enum per { kPerRound, kPerPair, kPerRank };

struct test {
  const char* name;
  void (*round)(struct run* run);
  int messages; /* that the time is divided by; 2 where half a round trip is meant */
  enum per per; /* the rounds take as many messages for each pair, or for each rank */
  int element;  /* bytes, of which a size is a multiple */
  int one_sided;
};

/* Each list ends with a test without name. */
extern const struct test kTwoSided[];
extern const struct test kOneSided[];
extern const struct test kCollective[];

/* @return the test, or NULL. */
const struct test* test_named(const char* name);

/* Messages that the rounds, 1 to kRoundsMax, carry: the time of one is that of all over this. */
double messages_of(const struct test* test, const struct run* run, int rounds);

/* Seconds that rounds take at the slowest rank. All ranks call it, and get the same. */
double timed(const struct test* test, struct run* run, int rounds);

/* Opens run->window, once. All ranks call it. */
void open_window(struct run* run);

/* Measures as the commands ask, until they end; see asked.c. All ranks call it. Ends the program if
 * the folder lacks its pipes, or a command is wrong. */
void measure_asked(struct run* run, const char* program, const char* folder);

#endif
