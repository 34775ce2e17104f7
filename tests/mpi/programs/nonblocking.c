/* Many nonblocking collectives under way at once, completed in another order. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kRounds = 20, kCount = 300 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  static int sums[kRounds][kCount], mine[kRounds][kCount], casts[kRounds][kCount];
  int* gathered = malloc(sizeof(int) * kRounds * (size_t)check_size);
  MPI_Request requests[kRounds * 4];
  for (int r = 0; r < kRounds; ++r) {
    for (int i = 0; i < kCount; ++i) {
      mine[r][i] = check_rank * r + i;
      casts[r][i] = check_rank == r % check_size ? r + i : -1;
    }
    MPI_Iallreduce(mine[r], sums[r], kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[r * 4]);
    MPI_Ibcast(casts[r], kCount, MPI_INT, r % check_size, MPI_COMM_WORLD, &requests[r * 4 + 1]);
    MPI_Iallgather(&mine[r][1], 1, MPI_INT, gathered + r * check_size, 1, MPI_INT, MPI_COMM_WORLD,
                   &requests[r * 4 + 2]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[r * 4 + 3]);
  }
  for (int r = kRounds - 1; r >= 0; --r) {
    MPI_Waitall(4, &requests[r * 4], MPI_STATUSES_IGNORE);
    for (int i = 0; i < kCount; ++i) {
      expect(sums[r][i], r * check_size * (check_size - 1) / 2 + check_size * i, "sum", i);
      expect(casts[r][i], r + i, "cast", i);
    }
    digest(gathered + r * check_size, sizeof(int) * (size_t)check_size);
  }
  return end();
}
