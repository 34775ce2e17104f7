/* Blocking sends of each size, each to its right neighbour. ranks: 2 4 */
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
    if (check_rank % 2 == 0) {
      MPI_Send(out, (int)kSizes[i], MPI_BYTE, right, i, MPI_COMM_WORLD);
    }
    MPI_Recv(in, kLongest, MPI_BYTE, left, i, MPI_COMM_WORLD, &status);
    if (check_rank % 2 != 0) {
      MPI_Send(out, (int)kSizes[i], MPI_BYTE, right, i, MPI_COMM_WORLD);
    }
    expect_bytes(in, kSizes[i], left, i);
    digest_status(&status, MPI_BYTE);
  }
  return end();
}
