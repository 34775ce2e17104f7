/* Measurements by message size for scripts/bench mpi, over the transport that mpirun was given.
 *
 *   mpirun -np 2 ... mpi_sizes TEST FROM TO MILLISECONDS REPEATS
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
 * allreduce: sum of ints; one call.
 *
 * FROM and TO are bytes of a message, 1 to 4 MiB (allreduce: from 4): FROM, then twice as many each
 * time up to TO. One repeat takes MILLISECONDS, 1 to 10000, but at least one window. REPEATS is 1
 * to 1000. Each gives one JSON object on stdout of rank 0.
 *
 * Rank 0 finds by trial how many rounds fill the time; those trials are the warm-up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kTag = 7,
  kAckTag = 8,
  kWindow = 64,
  kBytesMax = 4 << 20,
  kRoundsMax = 1 << 24,
  kTrials = 3
};

struct run {
  int rank;
  int peer;
  int bytes;
  char* out;
  char* in;
  MPI_Request requests[2 * kWindow];
};

static void latency(struct run* run) {
  if (run->rank == 0) {
    MPI_Send(run->out, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD);
    MPI_Recv(run->in, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(run->in, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(run->out, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD);
  }
}

static void answer(struct run* run) {
  char ack = 0;
  if (run->rank == 0) {
    MPI_Recv(&ack, 1, MPI_CHAR, run->peer, kAckTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&ack, 1, MPI_CHAR, run->peer, kAckTag, MPI_COMM_WORLD);
  }
}

static void one_way(struct run* run) {
  for (int i = 0; i < kWindow; ++i) {
    if (run->rank == 0) {
      MPI_Isend(run->out, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, &run->requests[i]);
    } else {
      MPI_Irecv(run->in, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, &run->requests[i]);
    }
  }
  MPI_Waitall(kWindow, run->requests, MPI_STATUSES_IGNORE);
  answer(run);
}

static void both_ways(struct run* run) {
  for (int i = 0; i < kWindow; ++i) {
    MPI_Irecv(run->in, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, &run->requests[i]);
  }
  for (int i = 0; i < kWindow; ++i) {
    MPI_Isend(run->out, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD,
              &run->requests[kWindow + i]);
  }
  MPI_Waitall(2 * kWindow, run->requests, MPI_STATUSES_IGNORE);
  answer(run);
}

static void allreduce(struct run* run) {
  MPI_Allreduce(run->out, run->in, run->bytes / (int)sizeof(int), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

struct test {
  const char* name;
  void (*round)(struct run* run);
  int messages; /* of a round; 2 where half a round trip is meant */
};

static const struct test kTests[] = {
    {"latency", latency, 2},    {"bandwidth", one_way, kWindow}, {"both", both_ways, 2 * kWindow},
    {"rate", one_way, kWindow}, {"allreduce", allreduce, 1},
};

/* Seconds that rounds take. */
static double timed(const struct test* test, struct run* run, int rounds) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    test->round(run);
  }
  return MPI_Wtime() - start;
}

/* The best of a few trials, since a trial in which another process took the core is worthless. */
static double tried(const struct test* test, struct run* run, int rounds) {
  double best = timed(test, run, rounds);
  for (int i = 1; i < kTrials; ++i) {
    const double seconds = timed(test, run, rounds);
    best = seconds < best ? seconds : best;
  }
  return best;
}

/* Rounds that fill the time, the same on all ranks. */
static int fill(const struct test* test, struct run* run, double wanted) {
  int rounds = 1;
  for (;;) {
    double seconds = tried(test, run, rounds);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (seconds >= wanted / 4 || rounds >= kRoundsMax) {
      const double fitting = rounds * wanted / (seconds > 0 ? seconds : 1e-9);
      return fitting < 1 ? 1 : fitting > kRoundsMax ? kRoundsMax : (int)fitting;
    }
    rounds *= 4;
  }
}

static void measure(const struct test* test, struct run* run, double wanted, long repeats) {
  const int rounds = fill(test, run, wanted);
  for (long i = 0; i < repeats; ++i) {
    const double seconds = timed(test, run, rounds);
    if (run->rank == 0) {
      printf("{\"test\": \"%s\", \"size\": %d, \"messages\": %.0f, \"seconds\": %.9f}\n",
             test->name, run->bytes, (double)rounds * test->messages, seconds);
      fflush(stdout);
    }
  }
}

/* Ends the program with a text, said once. */
static void give_up(int rank, const char* text) {
  if (rank == 0) {
    fprintf(stderr, "mpi_sizes: error: %s\n", text);
  }
  MPI_Finalize();
  exit(2);
}

static long number(int rank, const char* text, long least, long most) {
  char* end = NULL;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) {
    char what[128];
    snprintf(what, sizeof(what), "'%.40s' is no number from %ld to %ld", text, least, most);
    give_up(rank, what);
  }
  return value;
}

static char* memory(int rank) {
  char* const data = aligned_alloc(4096, kBytesMax);
  if (data == NULL) {
    give_up(rank, "not enough memory for one message");
  }
  memset(data, 0, kBytesMax);
  return data;
}

int main(int argc, char** argv) {
  static struct run run;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || argc != 6) {
    give_up(run.rank, "usage: mpirun -np 2 mpi_sizes TEST FROM TO MILLISECONDS REPEATS");
  }
  const struct test* test = NULL;
  for (size_t i = 0; i < sizeof(kTests) / sizeof(kTests[0]); ++i) {
    if (strcmp(argv[1], kTests[i].name) == 0) {
      test = &kTests[i];
    }
  }
  if (test == NULL) {
    give_up(run.rank, "the test is one of latency, bandwidth, both, rate, allreduce");
  }
  const long least = test->round == allreduce ? (long)sizeof(int) : 1;
  const long from = number(run.rank, argv[2], least, kBytesMax);
  const long to = number(run.rank, argv[3], from, kBytesMax);
  const double wanted = (double)number(run.rank, argv[4], 1, 10000) / 1000;
  const long repeats = number(run.rank, argv[5], 1, 1000);
  run.peer = 1 - run.rank;
  run.out = memory(run.rank);
  run.in = memory(run.rank);
  for (long bytes = from; bytes <= to; bytes *= 2) {
    run.bytes = (int)bytes;
    measure(test, &run, wanted, repeats);
  }
  free(run.out);
  free(run.in);
  MPI_Finalize();
  return 0;
}
