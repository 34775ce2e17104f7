/* A message longer than its buffer is an error of that receive, and of no other. ranks: 2 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* bytes = malloc(kLongest);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 4; i < kSizeCount; ++i) {
    if (check_rank == 0) {
      fill(bytes, kSizes[i], 0, i);
      MPI_Send(bytes, (int)kSizes[i], MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Send(bytes, (int)kSizes[i], MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else if (check_rank == 1) {
      MPI_Status status;
      int class = MPI_SUCCESS;
      const int rc = MPI_Recv(bytes, (int)kSizes[i] / 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
      MPI_Error_class(rc, &class);
      expect(class, MPI_ERR_TRUNCATE, "error of message", i);
      MPI_Recv(bytes, (int)kSizes[i], MPI_BYTE, 0, 2, MPI_COMM_WORLD, &status);
      expect_bytes(bytes, kSizes[i], 0, i);
      digest_long(class == MPI_ERR_TRUNCATE);
    }
  }
  return end();
}
