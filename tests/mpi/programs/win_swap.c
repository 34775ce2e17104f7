/* Compare_and_swap, as a lock of the user's own. osc: pt2pt (Open MPI 4.1's osc/rdma fails in
   MPI_Compare_and_swap, over its own transports, too) ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  long* memory;
  MPI_Win win;
  MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memset(memory, 0, 4 * sizeof(long));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 10; ++i) { /* who swaps it from 0 has it */
    const long mine = check_rank + 1, zero = 0;
    long old = 0;
    do {
      MPI_Compare_and_swap(&mine, &zero, &old, MPI_LONG, 0, 1, win);
      MPI_Win_flush(0, win);
    } while (old != 0);
    long value;
    MPI_Get(&value, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    value += 3;
    MPI_Put(&value, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    MPI_Compare_and_swap(&zero, &mine, &old, MPI_LONG, 0, 1, win);
    MPI_Win_flush(0, win);
    expect(old, mine, "owner", i);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    expect(memory[1], 0, "lock", 1);
    expect(memory[2], 30L * check_size, "under the lock", 2);
    digest(memory, 4 * sizeof(long));
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  return end();
}
