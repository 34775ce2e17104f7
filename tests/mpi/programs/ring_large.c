/* Large messages in both directions at once, all under way. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 6, kBytes = 700001 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc((size_t)kCount * kBytes);
  unsigned char* in = malloc((size_t)2 * kCount * kBytes);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  MPI_Request requests[4 * kCount];
  for (int i = 0; i < kCount; ++i) {
    fill(out + (size_t)i * kBytes, kBytes, check_rank, i);
    MPI_Irecv(in + (size_t)i * kBytes, kBytes, MPI_BYTE, left, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Irecv(in + (size_t)(kCount + i) * kBytes, kBytes, MPI_BYTE, right, kCount + i,
              MPI_COMM_WORLD, &requests[kCount + i]);
  }
  for (int i = kCount - 1; i >= 0; --i) {
    MPI_Isend(out + (size_t)i * kBytes, kBytes, MPI_BYTE, right, i, MPI_COMM_WORLD,
              &requests[2 * kCount + i]);
    MPI_Isend(out + (size_t)i * kBytes, kBytes, MPI_BYTE, left, kCount + i, MPI_COMM_WORLD,
              &requests[3 * kCount + i]);
  }
  MPI_Waitall(4 * kCount, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCount; ++i) {
    expect_bytes(in + (size_t)i * kBytes, kBytes, left, i);
    expect_bytes(in + (size_t)(kCount + i) * kBytes, kBytes, right, i);
  }
  return end();
}
