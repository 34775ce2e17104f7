/* Receives that are cancelled, and receives whose message came before. ranks: 2 4 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  for (int i = 0; i < 100; ++i) {
    int values[2] = {-1, -1};
    const int out = 1000 * check_rank + i;
    MPI_Request requests[2];
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(&values[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled, 1, "cancelled", i);
    MPI_Send(&out, 1, MPI_INT, right, 2, MPI_COMM_WORLD);
    MPI_Wait(&requests[1], &status);
    expect(values[0], -1, "value of the cancelled", i);
    expect(values[1], 1000 * left + i, "value", i);
    digest(values, sizeof(values));
  }
  return end();
}
