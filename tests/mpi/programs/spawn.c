/* A rank starts two others, exchanges a number with each, and parts with them, ten times: those of
 * later rounds have the places of those before them. ranks: 1 */
#include "tests/mpi/programs/check.h"

enum { kRounds = 10, kChildren = 2 };

static int be_child(MPI_Comm parent) {
  int number = 0;
  MPI_Recv(&number, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
  number = 2 * number + check_rank;
  MPI_Send(&number, 1, MPI_INT, 0, 2, parent);
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    return be_child(parent);
  }
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm children;
    int errors[kChildren];
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, kChildren, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                   errors);
    for (int child = 0; child < kChildren; ++child) {
      int number = 100 * round + child;
      MPI_Send(&number, 1, MPI_INT, child, 1, children);
    }
    for (int child = 0; child < kChildren; ++child) {
      int number = -1;
      MPI_Recv(&number, 1, MPI_INT, child, 2, children, MPI_STATUS_IGNORE);
      expect(number, 2 * (100 * round + child) + child, "answer of round", round);
      digest_long(number);
    }
    MPI_Comm_disconnect(&children);
  }
  return end();
}
