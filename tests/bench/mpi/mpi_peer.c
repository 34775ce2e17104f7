/* The comparison for scripts/bench msg: latency, message rate and bandwidth of an MPI.
 *
 *   mpirun -np 2 … mpi_peer TEST BYTES COUNT WINDOW REPEATS
 *
 * TEST     latency    ping-pong; half a round trip
 *          rate       blocking sends and receives, one way, nothing comes back
 *          stream     WINDOW of MPI_Isend and of MPI_Irecv at a time, nothing comes back
 *          windows    the same, and the receiver answers each window, as the OSU tests do
 * BYTES    of a message, 0 to 1 GiB
 * COUNT    messages each time (round trips for latency); windows are filled up
 * WINDOW   1 to 4096; latency and rate need none, give 1
 * REPEATS  how many times; one JSON object each, on stdout of rank 0
 *
 * One tenth of COUNT comes first and is not timed. Rank 0 sends. All messages of a side lie in the
 * same memory, as in the OSU tests. */
#include "tests/bench/mpi/bench.h"

static const char kProgram[] = "mpi_peer";
enum { kTag = 7, kAckTag = 8, kWindowMax = 4096 };

struct run {
  int rank;
  int bytes;
  long count;
  int window;
  char* data;
  MPI_Request requests[kWindowMax];
};

static void ping_pong(struct run* run, long count) {
  const int peer = 1 - run->rank;
  for (long i = 0; i < count; ++i) {
    if (run->rank == 0) {
      MPI_Send(run->data, run->bytes, MPI_CHAR, peer, kTag, MPI_COMM_WORLD);
      MPI_Recv(run->data, run->bytes, MPI_CHAR, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(run->data, run->bytes, MPI_CHAR, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(run->data, run->bytes, MPI_CHAR, peer, kTag, MPI_COMM_WORLD);
    }
  }
}

static void one_way(struct run* run, long count) {
  for (long i = 0; i < count; ++i) {
    if (run->rank == 0) {
      MPI_Send(run->data, run->bytes, MPI_CHAR, 1, kTag, MPI_COMM_WORLD);
    } else {
      MPI_Recv(run->data, run->bytes, MPI_CHAR, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

static void one_window(struct run* run) {
  for (int i = 0; i < run->window; ++i) {
    if (run->rank == 0) {
      MPI_Isend(run->data, run->bytes, MPI_CHAR, 1, kTag, MPI_COMM_WORLD, &run->requests[i]);
    } else {
      MPI_Irecv(run->data, run->bytes, MPI_CHAR, 0, kTag, MPI_COMM_WORLD, &run->requests[i]);
    }
  }
  MPI_Waitall(run->window, run->requests, MPI_STATUSES_IGNORE);
}

static void stream(struct run* run, long count) {
  for (long i = 0; i < count; i += run->window) {
    one_window(run);
  }
}

static void windows(struct run* run, long count) {
  char ack = 0;
  for (long i = 0; i < count; i += run->window) {
    one_window(run);
    if (run->rank == 0) {
      MPI_Recv(&ack, 1, MPI_CHAR, 1, kAckTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(&ack, 1, MPI_CHAR, 0, kAckTag, MPI_COMM_WORLD);
    }
  }
}

struct test {
  const char* name;
  void (*move)(struct run* run, long count);
};

static const struct test kTests[] = {
    {"latency", ping_pong},
    {"rate", one_way},
    {"stream", stream},
    {"windows", windows},
};

static void measure(const struct test* test, struct run* run) {
  test->move(run, run->count / 10);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  test->move(run, run->count);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  if (run->rank != 0) {
    return;
  }
  const long windows = (run->count + run->window - 1) / run->window;
  const double messages = (double)(windows * run->window);
  printf("{\"test\": \"%s\", \"size\": %d, \"count\": %.0f, \"window\": %d, \"seconds\": %.6f, ",
         test->name, run->bytes, messages, run->window, seconds);
  if (test->move == ping_pong) {
    printf("\"half_round_trip_ns\": %.1f}\n", seconds / messages / 2 * 1e9);
  } else {
    printf("\"messages_per_s\": %.0f, \"bytes_per_s\": %.0f}\n", messages / seconds,
           messages * run->bytes / seconds);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  static struct run run;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || argc != 6) {
    give_up(run.rank, kProgram, "usage: mpirun -np 2 mpi_peer TEST BYTES COUNT WINDOW REPEATS");
  }
  const struct test* test = NULL;
  for (size_t i = 0; i < sizeof(kTests) / sizeof(kTests[0]); ++i) {
    if (strcmp(argv[1], kTests[i].name) == 0) {
      test = &kTests[i];
    }
  }
  if (test == NULL) {
    give_up(run.rank, kProgram, "the test is one of latency, rate, stream, windows");
  }
  run.bytes = (int)number(run.rank, kProgram, argv[2], 0, 1l << 30);
  run.count = number(run.rank, kProgram, argv[3], 1, 1l << 40);
  run.window = (int)number(run.rank, kProgram, argv[4], 1, kWindowMax);
  const long repeats = number(run.rank, kProgram, argv[5], 1, 1000);
  run.data = page_memory(run.rank, kProgram, (size_t)run.bytes);
  for (long i = 0; i < repeats; ++i) {
    measure(test, &run);
  }
  free(run.data);
  MPI_Finalize();
  return 0;
}
