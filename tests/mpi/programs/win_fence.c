/* Put, get and accumulate between fences. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 50000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win win;
  long* memory = (long*)make_window(kCount, sizeof(long), &win);
  long* out = malloc(sizeof(long) * kCount);
  long* in = malloc(sizeof(long) * kCount);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int count = 1; count <= kCount; count = count * 6 + 1) {
    for (int i = 0; i < kCount; ++i) {
      memory[i] = -1;
      out[i] = 1000000L * check_rank + i;
    }
    MPI_Win_fence(0, win);
    MPI_Put(out, count, MPI_LONG, right, 3, count, MPI_LONG, win);
    MPI_Win_fence(0, win);
    expect(memory[2], -1, "before", 2);
    for (int i = 0; i < count; ++i) {
      expect(memory[3 + i], 1000000L * left + i, "put", i);
    }
    MPI_Get(in, count, MPI_LONG, right, 3, count, MPI_LONG, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < count; ++i) {
      expect(in[i], out[i], "get", i);
    }
    MPI_Win_fence(0, win);
    MPI_Accumulate(out, count, MPI_LONG, right, 3, count, MPI_LONG, MPI_SUM, win);
    MPI_Accumulate(out, count, MPI_LONG, left, 3, count, MPI_LONG, MPI_SUM, win);
    MPI_Win_fence(0, win);
    digest(memory, sizeof(long) * kCount);
  }
  MPI_Win_free(&win);
  free(memory);
  return end();
}
