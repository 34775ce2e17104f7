/* Gather, scatter, allgather and their v-variants. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kMost = 3000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const size_t all = (size_t)check_size * kMost;
  unsigned char* out = malloc(all);
  unsigned char* in = malloc(all);
  int* counts = malloc(sizeof(int) * (size_t)check_size);
  int* places = malloc(sizeof(int) * (size_t)check_size);
  for (int base = 0; base <= 2048; base = base * 8 + 1) {
    int total = 0;
    for (int r = 0; r < check_size; ++r) {
      counts[r] = base + r;
      places[r] = total;
      total += counts[r];
    }
    const int mine = counts[check_rank];
    fill(out, (size_t)mine, check_rank, base);
    memset(in, 0, all);
    MPI_Allgatherv(out, mine, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < check_size; ++r) {
      expect_bytes(in + places[r], (size_t)counts[r], r, base);
    }
    memset(in, 0, all);
    MPI_Allgather(out, base, MPI_BYTE, in, base, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < check_size; ++r) {
      expect_bytes(in + r * base, (size_t)base, r, base);
    }
    const int root = check_size - 1;
    memset(in, 0, all);
    MPI_Gatherv(out, mine, MPI_BYTE, in, counts, places, MPI_BYTE, root, MPI_COMM_WORLD);
    digest(in, all);
    MPI_Gather(out, base, MPI_BYTE, in, base, MPI_BYTE, 0, MPI_COMM_WORLD);
    digest(in, all);
    for (int r = 0; r < check_size; ++r) {
      fill(out + places[r], (size_t)counts[r], r, base);
    }
    memset(in, 0, all);
    MPI_Scatterv(out, counts, places, MPI_BYTE, in, mine, MPI_BYTE, root, MPI_COMM_WORLD);
    expect_bytes(in, (size_t)mine, check_rank, base);
    MPI_Scatter(out, base, MPI_BYTE, in, base, MPI_BYTE, 0, MPI_COMM_WORLD);
    digest(in, all);
  }
  return end();
}
