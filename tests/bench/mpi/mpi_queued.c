/* Many MPI_Get that are queued at once, for scripts/bench mpi.
 *
 *   mpirun -np 2 … mpi_queued COUNT BYTES
 *
 * Rank 0 calls COUNT MPI_Get of BYTES each, then one MPI_Win_flush: 1 to 1000000 of 1 byte to
 * 4 MiB. They go through kMemory bytes of the window in turn, more than a cache holds, and lie in
 * as many at rank 0, over and over, as those of osu_get_bw lie in one place. Rank 1 waits in a
 * barrier. Rank 0 prints {"count", "bytes", "seconds"}: from the first call to the end of the
 * flush. Exit code 1 if bytes are wrong.
 *
 * The window is made by MPI_Win_create: one of MPI_Win_allocate lies in memory that the ranks of a
 * machine share, and no transport would be used. */
#include "tests/bench/mpi/bench.h"

static const char kProgram[] = "mpi_queued";
enum { kMemory = 128 << 20, kWarm = 64, kBytesMax = 4 << 20 };

static char pattern(size_t at) {
  return (char)(1 + (at * 7 + at / 4096) % 127);
}

struct run {
  int rank;
  size_t bytes;
  size_t places;
  char* in;
  MPI_Win window;
};

static void get_all(const struct run* run, long count) {
  for (long i = 0; i < count; ++i) {
    const size_t at = (size_t)i % run->places * run->bytes;
    MPI_Get(run->in + at, (int)run->bytes, MPI_CHAR, 1, (MPI_Aint)at, (int)run->bytes, MPI_CHAR,
            run->window);
  }
  MPI_Win_flush(1, run->window);
}

/* @return whether the places that count gets fill have the window's bytes. */
static int is_right(const struct run* run, long count) {
  const size_t gets = (size_t)count;
  const size_t end = (gets < run->places ? gets : run->places) * run->bytes;
  for (size_t i = 0; i < end; ++i) {
    if (run->in[i] != pattern(i)) {
      return 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  struct run run = {0, 0, 0, NULL, MPI_WIN_NULL};
  int ranks = 0;
  int right = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || argc != 3) {
    give_up(run.rank, kProgram, "usage: mpirun -np 2 mpi_queued COUNT BYTES");
  }
  const long count = number(run.rank, kProgram, argv[1], 1, 1000000);
  run.bytes = (size_t)number(run.rank, kProgram, argv[2], 1, kBytesMax);
  run.places = kMemory / run.bytes;
  run.in = page_memory(run.rank, kProgram, kMemory);
  char* const shown = page_memory(run.rank, kProgram, kMemory);
  MPI_Win_create(shown, kMemory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run.window);
  for (size_t i = 0; i < kMemory; ++i) {
    shown[i] = pattern(i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, run.window);
  if (run.rank == 0) {
    get_all(&run, kWarm);
    memset(run.in, 0, kMemory);
    const double start = MPI_Wtime();
    get_all(&run, count);
    const double seconds = MPI_Wtime() - start;
    right = is_right(&run, count);
    if (right) {
      printf("{\"count\": %ld, \"bytes\": %zu, \"seconds\": %.6f}\n", count, run.bytes, seconds);
    } else {
      fprintf(stderr, "mpi_queued: error: wrong bytes\n");
    }
  }
  MPI_Win_unlock_all(run.window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&run.window);
  free(run.in);
  free(shown);
  MPI_Finalize();
  return right ? 0 : 1;
}
