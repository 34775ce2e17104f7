/* A rank sends to itself. ranks: 2 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char* out = malloc(kLongest);
  unsigned char* in = malloc(kLongest);
  for (int i = 0; i < kSizeCount; ++i) {
    MPI_Request request;
    MPI_Status status;
    fill(out, kSizes[i], check_rank, i);
    MPI_Irecv(in, kLongest, MPI_BYTE, check_rank, i, MPI_COMM_WORLD, &request);
    MPI_Send(out, (int)kSizes[i], MPI_BYTE, check_rank, i, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    digest_status(&status, MPI_BYTE);
    expect_bytes(in, kSizes[i], check_rank, i);
    MPI_Sendrecv(out, (int)kSizes[i], MPI_BYTE, 0, 1, in, kLongest, MPI_BYTE, 0, 1, MPI_COMM_SELF,
                 &status);
    expect_bytes(in, kSizes[i], check_rank, i);
    MPI_Isend(out, (int)kSizes[i], MPI_BYTE, check_rank, i, MPI_COMM_WORLD, &request);
    MPI_Recv(in, kLongest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_bytes(in, kSizes[i], check_rank, i);
  }
  return end();
}
