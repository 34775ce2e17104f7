/* Scan, exscan, reduce_scatter and reduce_scatter_block, blocking and not. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kCount = 700 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int all = kCount * check_size;
  int* out = malloc(sizeof(int) * (size_t)all);
  int* in = malloc(sizeof(int) * (size_t)all);
  int* counts = malloc(sizeof(int) * (size_t)check_size);
  for (int i = 0; i < all; ++i) {
    out[i] = check_rank + i;
  }
  MPI_Request request;
  MPI_Scan(out, in, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(in[0], check_rank * (check_rank + 1) / 2, "scan", 0);
  digest(in, sizeof(int) * kCount);
  memset(in, 0, sizeof(int) * kCount);
  MPI_Exscan(out, in, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (check_rank > 0) {
    expect(in[0], check_rank * (check_rank - 1) / 2, "exscan", 0);
    digest(in, sizeof(int) * kCount);
  }
  MPI_Iscan(out, in, kCount, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  digest(in, sizeof(int) * kCount);
  for (int r = 0; r < check_size; ++r) {
    counts[r] = kCount - check_size / 2 + r;
  }
  for (int r = 0, left = all; r < check_size; ++r) {
    counts[r] = r == check_size - 1 ? left : counts[r];
    left -= counts[r];
  }
  MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  digest(in, sizeof(int) * (size_t)counts[check_rank]);
  MPI_Reduce_scatter_block(out, in, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) {
    expect(in[i], check_size * (check_size - 1) / 2 + check_size * (check_rank * kCount + i),
           "block", i);
  }
  MPI_Ireduce_scatter_block(out, in, kCount, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  digest(in, sizeof(int) * kCount);
  return end();
}
