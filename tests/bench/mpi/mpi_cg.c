/* Conjugate gradients, for scripts/bench mpi: a halo exchange and two sums over all ranks in each
 * iteration, as cg of the NAS Parallel Benchmarks has, with more ranks than cores.
 *
 *   mpirun -np N … mpi_cg SIDE
 *
 * Solves (L + kShift) x = b on SIDE x SIDE x SIDE unknowns, SIDE 4 to 512: L is the Laplace
 * operator of seven points with zeroes at its border, and b is made of a known x. Each rank has a
 * number of planes, so a halo is SIDE x SIDE doubles. Rank 0 prints {"ranks", "iterations",
 * "seconds", "error"}: the seconds are those of the solution without MPI_Init, the error is the
 * greatest difference to the known x. Exit code 1 if it is not solved. */
#include <math.h>

#include "tests/bench/mpi/bench.h"

static const char kProgram[] = "mpi_cg";
static const double kShift = 0.005;
static const double kTolerance = 1e-9; /* of the residual, beside the one at the beginning */
static const double kErrorMost = 1e-6;
enum { kIterationsMost = 2000, kTagDown = 1, kTagUp = 2 };

struct grid {
  int rank;
  int ranks;
  int side;
  int plane;  /* unknowns of one */
  int first;  /* plane of the whole grid that is this rank's first */
  int planes; /* of this rank */
};

/* Vectors have a plane of the neighbour, or of the border, before and behind the rank's own. */
static double* vector(const struct grid* grid) {
  return page_memory(grid->rank, kProgram,
                     sizeof(double) * (size_t)(grid->planes + 2) * (size_t)grid->plane);
}

/* @return the place of the first own unknown in a vector. */
static size_t begin_of(const struct grid* grid) {
  return (size_t)grid->plane;
}

/* @return the place behind the last own unknown in a vector. */
static size_t end_of(const struct grid* grid) {
  return (size_t)grid->plane * (size_t)(grid->planes + 1);
}

static double known(const struct grid* grid, size_t at) {
  return 1 + (double)((at + (size_t)grid->first * (size_t)grid->plane) * 37 % 101) / 101;
}

static void exchange_halo(const struct grid* grid, double* v) {
  const int above = grid->rank > 0 ? grid->rank - 1 : MPI_PROC_NULL;
  const int below = grid->rank + 1 < grid->ranks ? grid->rank + 1 : MPI_PROC_NULL;
  double* const end = v + end_of(grid);
  MPI_Request requests[2];
  MPI_Irecv(v, grid->plane, MPI_DOUBLE, above, kTagDown, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(end, grid->plane, MPI_DOUBLE, below, kTagUp, MPI_COMM_WORLD, &requests[1]);
  MPI_Send(v + grid->plane, grid->plane, MPI_DOUBLE, above, kTagUp, MPI_COMM_WORLD);
  MPI_Send(end - grid->plane, grid->plane, MPI_DOUBLE, below, kTagDown, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* out = (L + kShift) v, of a line: the unknown before and behind it counts as zero. */
static void multiply_line(const struct grid* grid, const double* v, int line, double* out) {
  const int side = grid->side;
  const double* const low = line > 0 ? v - side : NULL;
  const double* const high = line + 1 < side ? v + side : NULL;
  for (int i = 0; i < side; ++i) {
    out[i] = (6 + kShift) * v[i] - v[i - grid->plane] - v[i + grid->plane];
  }
  for (int i = 1; i < side; ++i) {
    out[i] -= v[i - 1];
    out[i - 1] -= v[i];
  }
  for (int i = 0; low != NULL && i < side; ++i) {
    out[i] -= low[i];
  }
  for (int i = 0; high != NULL && i < side; ++i) {
    out[i] -= high[i];
  }
}

/* out = (L + kShift) v */
static void multiply(const struct grid* grid, double* v, double* out) {
  exchange_halo(grid, v);
  for (int i = 0; i < grid->planes * grid->side; ++i) {
    const size_t at = begin_of(grid) + (size_t)i * (size_t)grid->side;
    multiply_line(grid, v + at, i % grid->side, out + at);
  }
}

static double dot(const struct grid* grid, const double* a, const double* b) {
  const size_t end = end_of(grid);
  double own = 0;
  double all = 0;
  for (size_t i = begin_of(grid); i < end; ++i) {
    own += a[i] * b[i];
  }
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* Solves for x, which is zero at first; r is b at first. @return iterations. */
static int solve(const struct grid* grid, double* x, double* r, double* p, double* product) {
  const size_t begin = begin_of(grid);
  const size_t end = end_of(grid);
  memcpy(p + begin, r + begin, sizeof(double) * (end - begin));
  double square = dot(grid, r, r);
  const double wanted = square * kTolerance * kTolerance;
  int iterations = 0;
  for (; square > wanted && iterations < kIterationsMost; ++iterations) {
    multiply(grid, p, product);
    const double step = square / dot(grid, p, product);
    for (size_t i = begin; i < end; ++i) {
      x[i] += step * p[i];
      r[i] -= step * product[i];
    }
    const double next = dot(grid, r, r);
    for (size_t i = begin; i < end; ++i) {
      p[i] = r[i] + next / square * p[i];
    }
    square = next;
  }
  return iterations;
}

/* @return the greatest difference to the known x, of all ranks. */
static double error_of(const struct grid* grid, const double* x) {
  double own = 0;
  double most = 0;
  for (size_t i = begin_of(grid); i < end_of(grid); ++i) {
    own = fmax(own, fabs(x[i] - known(grid, i)));
  }
  MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

int main(int argc, char** argv) {
  struct grid grid = {0, 0, 0, 0, 0, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &grid.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &grid.ranks);
  if (argc != 2) {
    give_up(grid.rank, kProgram, "usage: mpirun -np N mpi_cg SIDE");
  }
  grid.side = (int)number(grid.rank, kProgram, argv[1], 4, 512);
  if (grid.ranks > grid.side) {
    give_up(grid.rank, kProgram, "a rank has no plane: take a larger SIDE");
  }
  grid.plane = grid.side * grid.side;
  grid.first = grid.side * grid.rank / grid.ranks;
  grid.planes = grid.side * (grid.rank + 1) / grid.ranks - grid.first;
  double* const x = vector(&grid);
  double* const r = vector(&grid);
  double* const p = vector(&grid);
  double* const product = vector(&grid);
  for (size_t i = begin_of(&grid); i < end_of(&grid); ++i) {
    p[i] = known(&grid, i);
  }
  multiply(&grid, p, r);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  const int iterations = solve(&grid, x, r, p, product);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  const double error = error_of(&grid, x);
  const int solved = error <= kErrorMost;
  if (grid.rank == 0 && solved) {
    printf("{\"ranks\": %d, \"iterations\": %d, \"seconds\": %.6f, \"error\": %.3g}\n", grid.ranks,
           iterations, seconds, error);
  } else if (grid.rank == 0) {
    fprintf(stderr, "mpi_cg: error: not solved: %d iterations, error %.3g\n", iterations, error);
  }
  free(x);
  free(r);
  free(p);
  free(product);
  MPI_Finalize();
  return solved ? 0 : 1;
}
