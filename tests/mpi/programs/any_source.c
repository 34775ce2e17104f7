/* Receives of any source and tag: each message comes once, those of one sender in order.
   ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kEach = 200 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (check_rank != 0) {
    for (int i = 0; i < kEach; ++i) {
      const int value = check_rank * kEach + i;
      MPI_Send(&value, 1, MPI_INT, 0, i % 7, MPI_COMM_WORLD);
    }
    return end();
  }
  int* next = calloc((size_t)check_size, sizeof(int));
  long sum = 0;
  for (int i = 0; i < kEach * (check_size - 1); ++i) {
    int value = 0;
    MPI_Status status;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    const int from = status.MPI_SOURCE;
    expect(value, from * kEach + next[from], "value from", from);
    expect(status.MPI_TAG, next[from] % 7, "tag from", from);
    ++next[from];
    sum += value;
  }
  digest_long(sum);
  return end();
}
