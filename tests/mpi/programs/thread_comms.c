/* Threads with communicators of their own, that do collectives at once. ranks: 2 4 */
#include <pthread.h>

#include "tests/mpi/programs/check.h"

enum { kThreads = 3, kRounds = 60 };

static MPI_Comm comms[kThreads];
static long results[kThreads];

static void* run(void* argument) {
  const int thread = (int)(intptr_t)argument;
  for (int i = 0; i < kRounds; ++i) {
    long mine = check_rank * 10 + thread + i, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comms[thread]);
    expect(sum, 10L * check_size * (check_size - 1) / 2 + (long)check_size * (thread + i), "sum",
           i);
    MPI_Bcast(&mine, 1, MPI_LONG, i % check_size, comms[thread]);
    expect(mine, (i % check_size) * 10 + thread + i, "cast", i);
    results[thread] += sum * 3 + mine;
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, run, (void*)(intptr_t)i);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  digest(results, sizeof(results));
  return end();
}
