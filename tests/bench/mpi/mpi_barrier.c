/* Barriers of MPI, measured; prints one JSON object. See scripts/lib/bench/barrier_mpi.py.
 *
 *   mpi_barrier time COUNT            MPI_Barrier: mean and median of rank 0's times
 *   mpi_barrier first COUNT           the same of the program's first barriers; others come after
 * 100 mpi_barrier overlap RUNS MS       MPI_Ibarrier, MS of computing, MPI_Test: how often it is
 * done mpi_barrier leave RUNS MS         the last rank comes MS late: when do the others leave?
 *   mpi_barrier count COUNT MS        barriers for callgrind; the last rank comes MS late
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int own_rank, all_ranks;

/* All ranks are on one machine, so the clock is the same. */
static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void* one, const void* other) {
  const double a = *(const double*)one;
  const double b = *(const double*)other;
  return (a > b) - (a < b);
}

static double at_share(double* sorted, int count, double share) {
  const int at = (int)(share * count);
  return sorted[at < count ? at : count - 1];
}

static void compute_s(double seconds) {
  const double until = now_s() + seconds;
  volatile unsigned work = 0;
  while (now_s() < until) {
    for (int i = 0; i < 100; ++i) {
      work = work * 3 + 1;
    }
  }
}

static void pause_s(double seconds) {
  const struct timespec pause = {(time_t)seconds,
                                 (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&pause, NULL);
}

/* By name, so that callgrind counts neither the group's creation nor other barriers. */
__attribute__((noinline)) void counted_barrier(void) {
  MPI_Barrier(MPI_COMM_WORLD);
}

static void measure_time(int count) {
  double* const took = malloc(sizeof(double) * (size_t)count);
  double all = 0;
  for (int i = 0; i < count; ++i) {
    const double from = now_s();
    MPI_Barrier(MPI_COMM_WORLD);
    took[i] = now_s() - from;
    all += took[i];
  }
  qsort(took, (size_t)count, sizeof(double), compare);
  if (own_rank == 0) {
    printf("{\"ranks\": %d, \"mean_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f}\n", all_ranks,
           1e6 * all / count, 1e6 * at_share(took, count, 0.5), 1e6 * at_share(took, count, 0.99));
  }
  free(took);
}

static void measure_overlap(int runs, double seconds) {
  long done = 0;
  for (int i = 0; i < runs; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    int is_done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    compute_s(seconds);
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    done += is_done;
    if (!is_done) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  long all = 0;
  MPI_Reduce(&done, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (own_rank == 0) {
    printf("{\"ranks\": %d, \"done_share\": %.6f}\n", all_ranks,
           (double)all / ((double)runs * all_ranks));
  }
}

static void measure_leave(int runs, double seconds) {
  const int count = runs * (all_ranks - 1);
  double* const waits = own_rank == 0 ? malloc(sizeof(double) * (size_t)count) : NULL;
  double* const left = malloc(sizeof(double) * (size_t)all_ranks);
  int got = 0;
  for (int i = 0; i < runs; ++i) {
    const int late = all_ranks - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (own_rank == late) {
      pause_s(seconds);
    }
    const double entered = now_s();
    MPI_Barrier(MPI_COMM_WORLD);
    const double own = own_rank == late ? entered : now_s();
    MPI_Gather(&own, 1, MPI_DOUBLE, left, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int rank = 0; own_rank == 0 && rank < late; ++rank) {
      waits[got++] = left[rank] - left[late];
    }
  }
  if (own_rank == 0) {
    qsort(waits, (size_t)got, sizeof(double), compare);
    printf("{\"ranks\": %d, \"least_ms\": %.4f, \"median_ms\": %.4f, \"p99_ms\": %.4f}\n",
           all_ranks, 1e3 * waits[0], 1e3 * at_share(waits, got, 0.5),
           1e3 * at_share(waits, got, 0.99));
  }
  free(left);
  free(waits);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &all_ranks);
  const char* const what = argc > 2 ? argv[1] : "";
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  const double seconds = argc > 3 ? 1e-3 * atof(argv[3]) : 0;
  enum { kWarmUp = 100 };
  for (int i = 0; i < kWarmUp && strcmp(what, "first") != 0; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int rc = 0;
  if (count <= 0) {
    rc = 2;
  } else if (strcmp(what, "time") == 0 || strcmp(what, "first") == 0) {
    measure_time(count);
  } else if (strcmp(what, "overlap") == 0 && seconds > 0) {
    measure_overlap(count, seconds);
  } else if (strcmp(what, "leave") == 0 && seconds > 0) {
    measure_leave(count, seconds);
  } else if (strcmp(what, "count") == 0 && seconds > 0) {
    for (int i = 0; i < count; ++i) {
      if (own_rank == all_ranks - 1) {
        pause_s(seconds);
      }
      counted_barrier();
    }
  } else {
    rc = 2;
  }
  if (rc != 0 && own_rank == 0) {
    fprintf(stderr, "usage: mpi_barrier time|first COUNT, or overlap|leave|count RUNS MS\n");
  }
  MPI_Finalize();
  return rc;
}
