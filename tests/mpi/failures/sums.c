/* Sums of all ranks that fail, with errors returned; a job for tests/mpi/failures/run. Each rank
 * prints how its failure was told.
 *
 *   mpirun -np N … sums killed COUNT
 *     The last rank kills itself among sums of COUNT integers. The others go on with sums, for the
 *     launcher to end them.
 *   mpirun -np N … sums differ COUNT [BEFORE]
 *     After BEFORE good sums the last rank gives one integer more. The next sum must be right.
 *   mpirun -np N … sums starved COUNT
 *     The last rank gets no memory for a vector. The sum after that must be right. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCountMost = 1 << 18, kTurnsBefore = 20 };

static size_t starves_from = SIZE_MAX; /* bytes; no more are allocated at once */

/* In the place of the library's, for all that the process loads. */
void* __libc_malloc(size_t bytes); /* NOLINT(readability-identifier-naming): glibc names it so */
void* malloc(size_t bytes) {
  return bytes >= starves_from ? NULL : __libc_malloc(bytes);
}

static int rank;
static int ranks;

static const char* name_of(int error) {
  int class = MPI_SUCCESS;
  MPI_Error_class(error, &class);
  if (class == MPI_SUCCESS) {
    return "success";
  }
  if (class == MPI_ERR_NO_MEM) {
    return "starved";
  }
  return class == MPI_ERR_TRUNCATE ? "truncated" : "failed";
}

static int sum(int count) {
  static int out[kCountMost + 1];
  static int in[kCountMost + 1];
  return MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void be_killed(int count) {
  int error = MPI_SUCCESS;
  for (long turn = 0; error == MPI_SUCCESS; ++turn) {
    if (rank == ranks - 1 && turn == kTurnsBefore) {
      raise(SIGKILL);
    }
    error = sum(count);
  }
  printf("rank %d: %s\n", rank, name_of(error));
  fflush(stdout);
  /* A rank may be told one sum before the others: it takes part in further ones, which fail. One
   * that ends would be noticed by the others, too. */
  for (;;) {
    (void)sum(count);
  }
}

/* One sum that fails, and one that must not. */
static void fail_once(int count) {
  const int error = sum(count);
  starves_from = SIZE_MAX;
  int total = 0;
  const int then = MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const int is_right = then == MPI_SUCCESS && total == ranks * (ranks - 1) / 2;
  printf("rank %d: %s, then %s\n", rank, name_of(error), is_right ? "right" : "wrong");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
  const long before = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
  if (argc < 3 || argc > 4 || count < 1 || count > kCountMost) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (strcmp(argv[1], "killed") == 0) {
    be_killed(count);
  }
  for (long turn = 0; turn < before; ++turn) {
    if (sum(count) != MPI_SUCCESS) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  const int is_last = rank == ranks - 1;
  const int starves = strcmp(argv[1], "starved") == 0;
  if (starves && is_last) {
    starves_from = (size_t)count * sizeof(int);
  }
  fail_once(count + (is_last && !starves));
  MPI_Finalize();
  return 0;
}
