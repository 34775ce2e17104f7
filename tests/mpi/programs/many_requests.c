/* Thousands of requests under way at once. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 8000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Request* requests = malloc(sizeof(MPI_Request) * 2 * kCount);
  int* in = malloc(sizeof(int) * kCount);
  int* out = malloc(sizeof(int) * kCount);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int i = 0; i < kCount; ++i) {
    out[i] = check_rank * kCount + i;
    MPI_Isend(&out[i], 1, MPI_INT, right, i % 1000, MPI_COMM_WORLD, &requests[kCount + i]);
  }
  for (int i = 0; i < kCount; ++i) {
    MPI_Irecv(&in[i], 1, MPI_INT, left, i % 1000, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(2 * kCount, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCount; ++i) {
    expect(in[i], left * kCount + i, "value", i);
  }
  digest(in, sizeof(int) * kCount);
  return end();
}
