/* Broadcasts of each size from each rank, blocking and not. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* bytes = malloc(kLongest);
  for (int i = 0; i < kSizeCount; ++i) {
    for (int root = 0; root < check_size; root += check_size / 2) {
      fill(bytes, kSizes[i], check_rank, i);
      MPI_Bcast(bytes, (int)kSizes[i], MPI_BYTE, root, MPI_COMM_WORLD);
      expect_bytes(bytes, kSizes[i], root, i);
      MPI_Request request;
      fill(bytes, kSizes[i], check_rank, i + 1);
      MPI_Ibcast(bytes, (int)kSizes[i], MPI_BYTE, root, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      expect_bytes(bytes, kSizes[i], root, i + 1);
    }
  }
  return end();
}
