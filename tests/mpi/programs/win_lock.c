/* Exclusive locks keep read-modify-write whole; shared ones let all read. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kRounds = 50 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win win;
  long* memory = (long*)make_window(16, sizeof(long), &win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kRounds; ++i) {
    long value = 0;
    const int owner = i % check_size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, win);
    MPI_Get(&value, 1, MPI_LONG, owner, 5, 1, MPI_LONG, win);
    MPI_Win_flush(owner, win);
    value += 1;
    MPI_Put(&value, 1, MPI_LONG, owner, 5, 1, MPI_LONG, win);
    MPI_Win_unlock(owner, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  long sum = 0;
  for (int r = 0; r < check_size; ++r) {
    long value = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win);
    MPI_Get(&value, 1, MPI_LONG, r, 5, 1, MPI_LONG, win);
    MPI_Win_unlock(r, win);
    sum += value;
  }
  expect(sum, (long)kRounds * check_size, "sum of counts", 0);
  digest_long(sum);
  MPI_Win_free(&win);
  free(memory);
  return end();
}
