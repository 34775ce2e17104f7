/* Probe, Iprobe, Mprobe and Improbe, by source and tag and without. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

static void receive_probed(unsigned char* in, int how, int from, int message) {
  MPI_Status status;
  MPI_Message handle = MPI_MESSAGE_NULL;
  int found = 0;
  switch (how) {
    case 0:
      MPI_Probe(from, message, MPI_COMM_WORLD, &status);
      break;
    case 1:
      while (!found) {
        MPI_Iprobe(from, message, MPI_COMM_WORLD, &found, &status);
      }
      break;
    case 2:
      MPI_Mprobe(from, message, MPI_COMM_WORLD, &handle, &status);
      break;
    default:
      while (!found) {
        MPI_Improbe(from, message, MPI_COMM_WORLD, &found, &handle, &status);
      }
  }
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  expect(count, (long)kSizes[message], "count of message", message);
  digest_status(&status, MPI_BYTE);
  if (handle == MPI_MESSAGE_NULL) {
    MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
  } else {
    MPI_Mrecv(in, count, MPI_BYTE, &handle, &status);
    expect(handle == MPI_MESSAGE_NULL, 1, "handle used up", message);
  }
  digest_status(&status, MPI_BYTE);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc(kLongest);
  unsigned char* in = malloc(kLongest);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int how = 0; how < 4; ++how) {
    for (int i = 0; i < kSizeCount; ++i) {
      MPI_Request send;
      fill(out, kSizes[i], check_rank, i);
      MPI_Isend(out, (int)kSizes[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &send);
      receive_probed(in, how, left, i);
      expect_bytes(in, kSizes[i], left, i);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
  }
  int found = 1;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  digest_long(found);
  expect(found, 0, "messages left", 0);
  return end();
}
