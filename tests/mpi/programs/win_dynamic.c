/* Windows that memory is attached to, and requests of puts and gets. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 2000 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  long* memory = calloc(kCount, sizeof(long));
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, memory, kCount * sizeof(long));
  MPI_Aint mine;
  MPI_Get_address(memory, &mine);
  MPI_Aint* where = malloc(sizeof(MPI_Aint) * (size_t)check_size);
  MPI_Allgather(&mine, 1, MPI_AINT, where, 1, MPI_AINT, MPI_COMM_WORLD);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  long* out = malloc(kCount * sizeof(long));
  long* in = malloc(kCount * sizeof(long));
  for (int i = 0; i < kCount; ++i) {
    out[i] = 10000L * check_rank + i;
  }
  MPI_Request request;
  MPI_Win_lock_all(0, win);
  MPI_Rput(out, kCount, MPI_LONG, right, where[right], kCount, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush(right, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  for (int i = 0; i < kCount; ++i) {
    expect(memory[i], 10000L * left + i, "rput", i);
  }
  MPI_Rget(in, kCount, MPI_LONG, right, where[right], kCount, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCount; ++i) {
    expect(in[i], out[i], "rget", i);
  }
  digest(in, kCount * sizeof(long));
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(win, memory);
  MPI_Win_free(&win);
  return end();
}
