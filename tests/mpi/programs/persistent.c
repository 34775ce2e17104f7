/* Persistent sends and receives, started many times. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kRounds = 50, kBytes = 20000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc(kBytes);
  unsigned char* in = malloc(kBytes);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  const int sizes[] = {8, 4097, kBytes};
  for (int s = 0; s < 3; ++s) {
    MPI_Request both[2];
    MPI_Recv_init(in, sizes[s], MPI_BYTE, left, 5, MPI_COMM_WORLD, &both[0]);
    (s == 1 ? MPI_Ssend_init : MPI_Send_init)(out, sizes[s], MPI_BYTE, right, 5, MPI_COMM_WORLD,
                                              &both[1]);
    for (int i = 0; i < kRounds; ++i) {
      fill(out, (size_t)sizes[s], check_rank, i);
      MPI_Startall(2, both);
      MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
      expect_bytes(in, (size_t)sizes[s], left, i);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
  }
  return end();
}
