/* Waitany, Waitsome, Testall, Testany over many requests. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kCount = 64, kBytes = 5000 };

static unsigned char in[kCount][kBytes];
static unsigned char out[kCount][kBytes];

static void complete(int how, MPI_Request* requests, int* seen) {
  int indices[kCount];
  int left = kCount;
  while (left > 0) {
    int count = 0;
    int flag = 0;
    switch (how) {
      case 0:
        MPI_Waitany(kCount, requests, indices, MPI_STATUS_IGNORE);
        count = 1;
        break;
      case 1:
        MPI_Waitsome(kCount, requests, &count, indices, MPI_STATUSES_IGNORE);
        break;
      case 2:
        MPI_Testsome(kCount, requests, &count, indices, MPI_STATUSES_IGNORE);
        break;
      default:
        MPI_Testany(kCount, requests, indices, &flag, MPI_STATUS_IGNORE);
        count = flag;
    }
    for (int i = 0; i < count; ++i) {
      expect(seen[indices[i]], 0, "seen before", indices[i]);
      seen[indices[i]] = 1;
    }
    left -= count;
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int how = 0; how < 4; ++how) {
    MPI_Request receives[kCount];
    MPI_Request sends[kCount];
    int seen[kCount] = {0};
    for (int i = 0; i < kCount; ++i) {
      MPI_Irecv(in[i], kBytes, MPI_BYTE, left, i, MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = kCount - 1; i >= 0; --i) {
      fill(out[i], (size_t)i * 78, check_rank, i);
      MPI_Isend(out[i], i * 78, MPI_BYTE, right, i, MPI_COMM_WORLD, &sends[i]);
    }
    complete(how, receives, seen);
    int done = 0;
    while (!done) {
      MPI_Testall(kCount, sends, &done, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < kCount; ++i) {
      expect_bytes(in[i], (size_t)i * 78, left, i);
    }
  }
  return end();
}
