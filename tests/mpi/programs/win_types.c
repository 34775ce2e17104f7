/* One-sided with derived types on either side. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kSide = 64 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win win;
  int* memory = (int*)make_window(kSide * kSide, sizeof(int), &win);
  int* out = malloc(kSide * kSide * sizeof(int));
  for (int i = 0; i < kSide * kSide; ++i) {
    memory[i] = 0;
    out[i] = check_rank * 10000 + i;
  }
  MPI_Datatype column;
  MPI_Type_vector(kSide, 1, kSide, MPI_INT, &column);
  MPI_Type_commit(&column);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  MPI_Win_fence(0, win);
  for (int i = 0; i < kSide; ++i) { /* rows here become columns there */
    MPI_Put(out + i * kSide, kSide, MPI_INT, right, i, 1, column, win);
  }
  MPI_Win_fence(0, win);
  for (int i = 0; i < kSide * kSide; ++i) {
    expect(memory[i], left * 10000 + i % kSide * kSide + i / kSide, "turned", i);
  }
  MPI_Win_fence(0, win); /* all have looked */
  MPI_Accumulate(out, 1, column, right, 5, kSide, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  digest(memory, kSide * kSide * sizeof(int));
  MPI_Type_free(&column);
  MPI_Win_free(&win);
  free(memory);
  return end();
}
