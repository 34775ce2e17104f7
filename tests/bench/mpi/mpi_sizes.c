/* Measurements by message size for scripts/bench mpi, over the transport that mpirun was given.
 *
 *   mpirun -np N ... mpi_sizes TEST SIZES MILLISECONDS REPEATS
 *   mpirun -np N ... mpi_sizes asked FOLDER
 *
 * TEST is one of:
 *
 * latency: ping-pong of MPI_Send and MPI_Recv; half a round trip.
 *
 * bandwidth: 64 MPI_Isend and MPI_Irecv at a time, and the receiver answers, as osu_bw does.
 *
 * both: the same in both directions at once, as osu_bibw does.
 *
 * rate: as bandwidth; its figure is messages a second.
 *
 * put, get: MPI_Put or MPI_Get, then MPI_Win_flush, as osu_put_latency does. put-bandwidth and
 * get-bandwidth: 64 of them, then the flush. The window is locked by MPI_Win_lock_all, and is made
 * by MPI_Win_create: one of MPI_Win_allocate lies in memory that the ranks of a machine share, and
 * no transport would be used.
 *
 * allreduce: sum of ints. bcast: from each rank in turn; the figure is one call's. alltoall: the
 * size is what each rank has for each other. barrier: give one size.
 *
 * With more than two ranks the first half sends to the second half in the tests of two sides, each
 * rank to one of its own, and the time is that of the slowest; half a round trip is of each pair.
 *
 * SIZES are bytes, 1 to 4 MiB, as in 1,2,4 (allreduce: multiples of 4). One repeat takes
 * MILLISECONDS, 1 to 10000, but at least one round. REPEATS is 1 to 1000; those of a size end after
 * kPatience times as long as they should take. Each gives one JSON object on stdout of rank 0.
 *
 * The ranks find by trial how many rounds fill the time; those trials are the warm-up.
 *
 * In the second form another program chooses each measurement; see asked.c. */
#include "tests/bench/mpi/sizes.h"

static const char kProgram[] = "mpi_sizes";
/* As a repeat of the first size: mpirun and the ranks' own threads are still busy with the start.
 */
static const double kWarmUpS = 0.2;
enum { kTrials = 3, kPatience = 8, kSizesMax = 256 };

double timed(const struct test* test, struct run* run, int rounds) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    test->round(run);
  }
  const double own = MPI_Wtime() - start;
  double most = 0;
  MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

/* The best of a few trials, since a trial in which another process took the core is worthless; of
 * two, if both take long. */
static double tried(const struct test* test, struct run* run, int rounds, double wanted) {
  double best = timed(test, run, rounds);
  for (int i = 1; i < kTrials && (i == 1 || best < kPatience * wanted); ++i) {
    const double seconds = timed(test, run, rounds);
    best = seconds < best ? seconds : best;
  }
  return best;
}

/* Rounds that fill the time. */
static int fill(const struct test* test, struct run* run, double wanted) {
  int rounds = 1;
  for (;;) {
    const double seconds = tried(test, run, rounds, wanted);
    if (seconds >= wanted / 4 || rounds >= kRoundsMax) {
      const double fitting = rounds * wanted / (seconds > 0 ? seconds : 1e-9);
      return fitting < 1 ? 1 : fitting > kRoundsMax ? kRoundsMax : (int)fitting;
    }
    rounds *= 4;
  }
}

double messages_of(const struct test* test, const struct run* run, int rounds) {
  const int times[] = {[kPerRound] = 1, [kPerPair] = run->ranks / 2, [kPerRank] = run->ranks};
  return (double)rounds * test->messages * times[test->per];
}

static void measure(const struct test* test, struct run* run, double wanted, long repeats) {
  const int rounds = fill(test, run, wanted);
  double passed = 0;
  for (long i = 0; i < repeats && passed < kPatience * wanted * (double)repeats; ++i) {
    const double seconds = timed(test, run, rounds);
    passed += seconds;
    if (run->rank == 0) {
      printf("{\"test\": \"%s\", \"size\": %d, \"messages\": %.0f, \"seconds\": %.9f}\n",
             test->name, run->bytes, messages_of(test, run, rounds), seconds);
      fflush(stdout);
    }
  }
}

const struct test* test_named(const char* name) {
  const struct test* const lists[] = {kTwoSided, kOneSided, kCollective};
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
    for (const struct test* test = lists[i]; test->name != NULL; ++test) {
      if (strcmp(name, test->name) == 0) {
        return test;
      }
    }
  }
  return NULL;
}

void open_window(struct run* run) {
  MPI_Win_create(run->shown, kBytesMax, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run->window);
  MPI_Win_lock_all(0, run->window);
}

/* Reads the sizes, at most kSizesMax. @return how many there are. */
static int sizes_of(const struct run* run, const struct test* test, char* text, int* sizes) {
  int count = 0;
  for (char* one = strtok(text, ","); one != NULL; one = strtok(NULL, ",")) {
    if (count == kSizesMax) {
      give_up(run->rank, kProgram, "too many sizes");
    }
    sizes[count] = (int)number(run->rank, kProgram, one, 1, kBytesMax);
    if (sizes[count++] % test->element != 0) {
      give_up(run->rank, kProgram, "a size is no multiple of this test's elements");
    }
  }
  return count;
}

static void measure_all(const struct test* test, struct run* run, char** argv) {
  int sizes[kSizesMax];
  const int count = sizes_of(run, test, argv[2], sizes);
  const double wanted = (double)number(run->rank, kProgram, argv[3], 1, 10000) / 1000;
  const long repeats = number(run->rank, kProgram, argv[4], 1, 1000);
  if (test->one_sided) {
    open_window(run);
  }
  run->bytes = count > 0 ? sizes[0] : 1;
  (void)fill(test, run, kWarmUpS);
  for (int i = 0; i < count; ++i) {
    run->bytes = sizes[i];
    measure(test, run, wanted, repeats);
  }
}

/* The first form. Ends the program if an argument is wrong. */
static void measure_named(struct run* run, char** argv) {
  const struct test* const test = test_named(argv[1]);
  if (test == NULL) {
    give_up(run->rank, kProgram, "no such test; the head of mpi_sizes.c has a list");
  }
  if (test->one_sided && run->ranks != 2) {
    give_up(run->rank, kProgram, "a test of one side wants two ranks");
  }
  measure_all(test, run, argv);
}

int main(int argc, char** argv) {
  static struct run run;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
  const int asked = argc == 3 && strcmp(argv[1], "asked") == 0;
  if (run.ranks % 2 != 0 || (argc != 5 && !asked)) {
    give_up(run.rank, kProgram,
            "usage: mpirun -np N mpi_sizes TEST SIZES MILLISECONDS REPEATS, or mpi_sizes asked "
            "FOLDER, N even");
  }
  run.sends = run.rank < run.ranks / 2;
  run.peer = (run.rank + run.ranks / 2) % run.ranks;
  run.window = MPI_WIN_NULL;
  run.out = page_memory(run.rank, kProgram, (size_t)run.ranks * kBytesMax);
  run.in = page_memory(run.rank, kProgram, (size_t)run.ranks * kBytesMax);
  run.shown = page_memory(run.rank, kProgram, kBytesMax);
  if (asked) {
    measure_asked(&run, kProgram, argv[2]);
  } else {
    measure_named(&run, argv);
  }
  if (run.window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(run.window);
    MPI_Win_free(&run.window);
  }
  free(run.out);
  free(run.in);
  free(run.shown);
  MPI_Finalize();
  return 0;
}
