/* All send to rank 0, which receives in the reverse order of the ranks. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kEach = 300, kBytes = 6000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* bytes = malloc(kBytes);
  for (int i = 0; i < kEach && check_rank != 0; ++i) {
    const size_t size = (size_t)(i * 37 % kBytes);
    fill(bytes, size, check_rank, i);
    MPI_Send(bytes, (int)size, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
  }
  for (int from = check_size - 1; from > 0 && check_rank == 0; --from) {
    for (int i = 0; i < kEach; ++i) {
      MPI_Status status;
      MPI_Recv(bytes, kBytes, MPI_BYTE, from, 3, MPI_COMM_WORLD, &status);
      digest_status(&status, MPI_BYTE);
      expect_bytes(bytes, (size_t)(i * 37 % kBytes), from, i);
    }
  }
  return end();
}
