/* Fetch_and_op, get_accumulate, and requests of them. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kRounds = 100 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win win;
  long* memory = (long*)make_window(64, sizeof(long), &win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  const long one = 1;
  long before = -1, old = 0;
  for (int i = 0; i < kRounds; ++i) {
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    expect(old > before, 1, "it grows", i);
    before = old;
  }
  long add[8], got[8];
  MPI_Request request;
  for (int i = 0; i < 8; ++i) {
    add[i] = check_rank + i;
  }
  MPI_Get_accumulate(add, 8, MPI_LONG, got, 8, MPI_LONG, 0, 8, 8, MPI_LONG, MPI_SUM, win);
  MPI_Win_flush(0, win);
  MPI_Raccumulate(add, 8, MPI_LONG, 0, 16, 8, MPI_LONG, MPI_SUM, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush_all(win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    expect(memory[0], (long)kRounds * check_size, "counter", 0);
    for (int i = 0; i < 8; ++i) {
      const long sum = (long)check_size * (check_size - 1) / 2 + (long)check_size * i;
      expect(memory[8 + i], sum, "get_accumulate", i);
      expect(memory[16 + i], sum, "raccumulate", i);
    }
    digest(memory, 64 * sizeof(long));
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  free(memory);
  return end();
}
