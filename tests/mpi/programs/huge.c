/* Messages of 16 MiB and odd sizes, at odd addresses. ranks: 2 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const size_t sizes[] = {(1u << 24) + 3, (1u << 22) - 1, 5000001};
  unsigned char* out = malloc((1u << 24) + 64);
  unsigned char* in = malloc((1u << 24) + 64);
  for (int i = 0; i < 3 && check_rank < 2; ++i) {
    for (size_t at = 0; at < 8; at += 3) {
      fill(out + at, sizes[i], check_rank, i);
      MPI_Sendrecv(out + at, (int)sizes[i], MPI_BYTE, 1 - check_rank, 1, in + 5 - at / 2,
                   (int)sizes[i], MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      expect_bytes(in + 5 - at / 2, sizes[i], 1 - check_rank, i);
    }
  }
  return end();
}
