/* Synchronous, ready and buffered sends, blocking and not. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

enum { kModes = 7 };

static void post(int mode, const void* at, int count, int to, int tag, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  switch (mode) {
    case 0:
      MPI_Ssend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Rsend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    case 2:
      MPI_Bsend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
      break;
    case 3:
      MPI_Isend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
      break;
    case 4:
      MPI_Issend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
      break;
    case 5:
      MPI_Irsend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
      break;
    default:
      MPI_Ibsend(at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
      break;
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc(kLongest);
  unsigned char* in = malloc(kLongest);
  void* buffer = malloc(2 * kLongest + MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(buffer, 2 * kLongest + MPI_BSEND_OVERHEAD);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int mode = 0; mode < kModes; ++mode) {
    for (int i = 0; i < kSizeCount; ++i) {
      MPI_Request receive;
      MPI_Request send;
      MPI_Status status;
      MPI_Irecv(in, kLongest, MPI_BYTE, left, mode, MPI_COMM_WORLD, &receive);
      MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs the receive */
      fill(out, kSizes[i], check_rank, i + mode);
      post(mode, out, (int)kSizes[i], right, mode, &send);
      MPI_Wait(&receive, &status);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      expect_bytes(in, kSizes[i], left, i + mode);
      digest_status(&status, MPI_BYTE);
    }
  }
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
  return end();
}
