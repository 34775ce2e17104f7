/* Post, start, complete, wait: between neighbours only. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 3000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  static int memory[kCount], out[kCount];
  MPI_Win win;
  MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Group world, to, from;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  MPI_Group_incl(world, 1, &right, &to);
  MPI_Group_incl(world, 1, &left, &from);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < kCount; ++i) {
      out[i] = check_rank * 100 + round + i;
    }
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(out, kCount, MPI_INT, right, 0, kCount, MPI_INT, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    for (int i = 0; i < kCount; ++i) {
      expect(memory[i], left * 100 + round + i, "value", i);
    }
    digest(memory, sizeof(memory));
  }
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&world);
  MPI_Win_free(&win);
  return end();
}
