/* Ranks with threads that wait in MPI while others compute, for scripts/bench mpi: more of them
 * than cores.
 *
 *   mpirun -np N … mpi_threads THREADS ROUNDS STEPS BYTES
 *
 * Each thread of a rank is in a ring of its own with the threads of the same number of the other
 * ranks, N 2 or more. A message of BYTES goes ROUNDS times round each ring; each thread that
 * receives it computes STEPS steps of a generator from it, and sends on what came of it. So one
 * thread of a ring computes, and all its others wait in MPI_Recv, or in MPI_Send of a message that
 * is long. THREADS is 1 to 16, ROUNDS 1 to 100000, STEPS 1 to 100000000, BYTES 8 to 4 MiB. Rank 0
 * prints {"ranks", "seconds"}. Exit code 1 if a message is not the one that as many steps at once
 * give. */
#include <pthread.h>
#include <stdint.h>

#include "tests/bench/mpi/bench.h"

static const char kProgram[] = "mpi_threads";
static const uint64_t kFactor = 6364136223846793005u;
static const uint64_t kAddend = 1442695040888963407u;
enum { kThreadsMost = 16, kTag = 1, kBytesMost = 4 << 20 };

struct ring {
  MPI_Comm comm;
  int rank;
  int ranks;
  long rounds;
  long steps;
  int words;
  uint64_t* message; /* at the end as rank 0 receives it */
};

/* @return the result of that many steps. The compiler must take each: the value lies in volatile
 * memory. */
static uint64_t computed(uint64_t value, long steps) {
  volatile uint64_t kept = value;
  for (long i = 0; i < steps; ++i) {
    kept = kept * kFactor + kAddend;
  }
  return kept;
}

/* @return the result of that many steps, by squaring: a step is value -> factor * value + addend.
 */
static uint64_t expected(uint64_t value, uint64_t steps) {
  uint64_t factor = kFactor;
  uint64_t addend = kAddend;
  for (; steps > 0; steps /= 2) {
    if (steps % 2 == 1) {
      value = factor * value + addend;
    }
    addend = factor * addend + addend;
    factor *= factor;
  }
  return value;
}

/* Each word of a message tells its place, too. */
static void fill(struct ring* ring, uint64_t value) {
  for (int i = 0; i < ring->words; ++i) {
    ring->message[i] = value + (uint64_t)(ring->words - 1 - i);
  }
}

static int is_filled(const struct ring* ring, uint64_t value) {
  int right = 1;
  for (int i = 0; i < ring->words; ++i) {
    right &= ring->message[i] == value + (uint64_t)(ring->words - 1 - i);
  }
  return right;
}

static void receive(struct ring* ring, int from) {
  MPI_Recv(ring->message, ring->words, MPI_UINT64_T, from, kTag, ring->comm, MPI_STATUS_IGNORE);
}

static void* pass_on(void* context) {
  struct ring* const ring = context;
  const int from = (ring->rank + ring->ranks - 1) % ring->ranks;
  const int to = (ring->rank + 1) % ring->ranks;
  for (long i = 0; i < ring->rounds; ++i) {
    if (ring->rank != 0 || i > 0) {
      receive(ring, from);
    }
    fill(ring, computed(ring->message[ring->words - 1], ring->steps));
    MPI_Send(ring->message, ring->words, MPI_UINT64_T, to, kTag, ring->comm);
  }
  if (ring->rank == 0) {
    receive(ring, from);
  }
  return NULL;
}

/* Seconds that the rings take. */
static double timed(struct ring* rings, long count) {
  pthread_t threads[kThreadsMost];
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, pass_on, &rings[i]) != 0) {
      fprintf(stderr, "%s: error: no thread\n", kProgram);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  for (long i = 0; i < count; ++i) {
    pthread_join(threads[i], NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  struct ring rings[kThreadsMost];
  int rank = 0;
  int ranks = 0;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5 || ranks < 2 || level != MPI_THREAD_MULTIPLE) {
    give_up(rank, kProgram,
            "usage: mpirun -np N mpi_threads THREADS ROUNDS STEPS BYTES, N 2 or more");
  }
  const long threads = number(rank, kProgram, argv[1], 1, kThreadsMost);
  const long rounds = number(rank, kProgram, argv[2], 1, 100000);
  const long steps = number(rank, kProgram, argv[3], 1, 100000000);
  const int words = (int)number(rank, kProgram, argv[4], 8, kBytesMost) / (int)sizeof(uint64_t);
  for (long i = 0; i < threads; ++i) {
    const struct ring ring = {MPI_COMM_NULL,
                              rank,
                              ranks,
                              rounds,
                              steps,
                              words,
                              page_memory(rank, kProgram, (size_t)words * sizeof(uint64_t))};
    rings[i] = ring;
    fill(&rings[i], (uint64_t)i);
    MPI_Comm_dup(MPI_COMM_WORLD, &rings[i].comm);
  }
  const double seconds = timed(rings, threads);
  const uint64_t all = (uint64_t)rounds * (uint64_t)ranks * (uint64_t)steps;
  int right = 1;
  for (long i = 0; i < threads; ++i) {
    right &= rank != 0 || is_filled(&rings[i], expected((uint64_t)i, all));
    free(rings[i].message);
    MPI_Comm_free(&rings[i].comm);
  }
  if (rank == 0 && right) {
    printf("{\"ranks\": %d, \"seconds\": %.6f}\n", ranks, seconds);
  } else if (rank == 0) {
    fprintf(stderr, "mpi_threads: error: a message is wrong\n");
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
