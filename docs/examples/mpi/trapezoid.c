/* The integral of x^2 from 0 to 3 in 1024 strips [S2]: each rank sums up its part, rank 0 adds
 * them. ranks: 8 128
 *
 * mpicc -O2 -o trapezoid trapezoid.c && scripts/mpirun-rio -np 8 ./trapezoid
 */
#include <mpi.h>
#include <stdio.h>

enum { kStrips = 1024 };

static double height(double x) {
  return x * x;
}

static double area(double from, double to, int strips) {
  const double width = (to - from) / strips;
  double sum = (height(from) + height(to)) / 2;
  for (int i = 1; i < strips; ++i) {
    sum += height(from + i * width);
  }
  return sum * width;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double width = 3.0 / kStrips;
  const int mine = kStrips / size; /* powers of two: no strip is left over */
  double total = area(rank * mine * width, (rank + 1) * mine * width, mine);
  if (rank != 0) {
    MPI_Send(&total, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  }
  for (int from = 1; from < size && rank == 0; ++from) {
    double part;
    MPI_Recv(&part, 1, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    total += part;
  }
  if (rank == 0) {
    printf("with %d strips, the integral from 0 to 3 is %.15f\n", kStrips, total);
  }
  MPI_Finalize();
  return 0;
}
