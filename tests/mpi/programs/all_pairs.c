/* Each rank sends to each, itself too, in several sizes. ranks: 4 8 */
#include "tests/mpi/programs/check.h"

enum { kBytes = 30000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int sizes[] = {3, 4050, kBytes};
  unsigned char* out = malloc(kBytes);
  unsigned char* in = malloc((size_t)check_size * kBytes);
  MPI_Request* requests = malloc(sizeof(MPI_Request) * 2 * (size_t)check_size);
  for (int s = 0; s < 3; ++s) {
    fill(out, (size_t)sizes[s], check_rank, s);
    for (int r = 0; r < check_size; ++r) {
      MPI_Irecv(in + (size_t)r * kBytes, kBytes, MPI_BYTE, r, s, MPI_COMM_WORLD, &requests[r]);
    }
    for (int r = 0; r < check_size; ++r) {
      MPI_Isend(out, sizes[s], MPI_BYTE, (check_rank + r) % check_size, s, MPI_COMM_WORLD,
                &requests[check_size + r]);
    }
    MPI_Waitall(2 * check_size, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < check_size; ++r) {
      expect_bytes(in + (size_t)r * kBytes, (size_t)sizes[s], r, s);
    }
  }
  return end();
}
