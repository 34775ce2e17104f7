/* Request_get_status, Test, and requests that are freed. ranks: 2 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int other = 1 - check_rank;
  for (int i = 0; i < 100 && check_rank < 2; ++i) {
    int value = -1, done = 0;
    const int out = check_rank * 500 + i;
    MPI_Request receive, send;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, other, i, MPI_COMM_WORLD, &receive);
    MPI_Isend(&out, 1, MPI_INT, other, i, MPI_COMM_WORLD, &send);
    while (!done) {
      MPI_Request_get_status(receive, &done, &status);
    }
    digest_status(&status, MPI_INT);
    MPI_Test(&receive, &done, &status);
    expect(done, 1, "tested", i);
    expect(value, other * 500 + i, "value", i);
    if (i % 2) {
      MPI_Wait(&send, MPI_STATUS_IGNORE);
    } else {
      MPI_Request_free(&send);
      MPI_Sendrecv(&out, 1, MPI_INT, other, 1000, &value, 1, MPI_INT, other, 1000, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE); /* it is gone before `out` is */
    }
    digest(&value, sizeof(value));
  }
  return end();
}
