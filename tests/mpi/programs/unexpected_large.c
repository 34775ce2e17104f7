/* Large messages that arrive before their receives are posted, received in another order. ranks: 2
 * 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 10, kBytes = 200000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc((size_t)kCount * kBytes);
  unsigned char* in = malloc(kBytes);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  MPI_Request requests[kCount];
  for (int i = 0; i < kCount; ++i) {
    fill(out + (size_t)i * kBytes, kBytes, check_rank, i);
    MPI_Isend(out + (size_t)i * kBytes, kBytes, MPI_BYTE, right, i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = kCount - 1; i >= 0; --i) {
    MPI_Recv(in, kBytes, MPI_BYTE, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_bytes(in, kBytes, left, i);
  }
  MPI_Waitall(kCount, requests, MPI_STATUSES_IGNORE);
  return end();
}
