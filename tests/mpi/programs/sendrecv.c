/* Sendrecv and Sendrecv_replace around a ring. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc(kLongest);
  unsigned char* in = malloc(kLongest);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int i = 0; i < kSizeCount; ++i) {
    MPI_Status status;
    fill(out, kSizes[i], check_rank, i);
    MPI_Sendrecv(out, (int)kSizes[i], MPI_BYTE, right, i, in, kLongest, MPI_BYTE, left, i,
                 MPI_COMM_WORLD, &status);
    digest_status(&status, MPI_BYTE);
    expect_bytes(in, kSizes[i], left, i);
    MPI_Sendrecv_replace(out, (int)kSizes[i], MPI_BYTE, left, i, right, i, MPI_COMM_WORLD, &status);
    expect_bytes(out, kSizes[i], right, i);
  }
  MPI_Send(out, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  return end();
}
