/* Windows of memory that all ranks of a machine share. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  long* memory;
  MPI_Win win;
  MPI_Win_allocate_shared(100 * sizeof(long), sizeof(long), MPI_INFO_NULL, node, &memory, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 100; ++i) {
    memory[i] = check_rank * 1000L + i;
  }
  MPI_Win_sync(win);
  MPI_Barrier(node);
  MPI_Win_sync(win);
  const int right = (check_rank + 1) % check_size;
  MPI_Aint bytes;
  int unit;
  long* there;
  MPI_Win_shared_query(win, right, &bytes, &unit, &there);
  for (int i = 0; i < 100; ++i) {
    expect(there[i], right * 1000L + i, "shared", i);
  }
  digest(there, 100 * sizeof(long));
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
  return end();
}
