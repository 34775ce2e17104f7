/* Small messages do not overtake large ones of the same tag. ranks: 2 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* bytes = malloc(kLongest);
  MPI_Request* sends = malloc(sizeof(MPI_Request) * 200);
  unsigned char** out = malloc(sizeof(unsigned char*) * 200);
  for (int i = 0; i < 200; ++i) {
    const size_t size = i % 5 == 0 ? 300000 : (size_t)i * 3;
    if (check_rank == 0) {
      out[i] = malloc(size + 1);
      fill(out[i], size, 0, i);
      MPI_Isend(out[i], (int)size, MPI_BYTE, 1, 9, MPI_COMM_WORLD, &sends[i]);
    } else if (check_rank == 1) {
      MPI_Status status;
      MPI_Recv(bytes, kLongest, MPI_BYTE, 0, i % 2 ? 9 : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      digest_status(&status, MPI_BYTE);
      expect_bytes(bytes, size, 0, i);
    }
  }
  if (check_rank == 0) {
    MPI_Waitall(200, sends, MPI_STATUSES_IGNORE);
  }
  return end();
}
