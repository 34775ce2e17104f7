/* Several threads of each rank, each with a tag of its own. ranks: 2 4 */
#include <pthread.h>

#include "tests/mpi/programs/check.h"

enum { kThreads = 4, kRounds = 200, kBytes = 9000 };

static uint64_t sums[kThreads];

static void* run(void* argument) {
  const int thread = (int)(intptr_t)argument;
  unsigned char* out = malloc(kBytes);
  unsigned char* in = malloc(kBytes);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int i = 0; i < kRounds; ++i) {
    const size_t size = (size_t)(i * 97 % kBytes);
    fill(out, size, check_rank, thread * 1000 + i);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, right, thread, in, kBytes, MPI_BYTE, left, thread,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t b = 0; b < size; ++b) {
      expect(in[b], byte_of(left, thread * 1000 + i, b), "byte", (long)b);
      sums[thread] = sums[thread] * 31 + in[b];
    }
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  expect(provided, MPI_THREAD_MULTIPLE, "thread level", 0);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, run, (void*)(intptr_t)i);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  digest(sums, sizeof(sums));
  return end();
}
