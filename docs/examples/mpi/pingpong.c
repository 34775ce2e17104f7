/* Ping-pong: half of a round trip, by size. ranks: 2
 *
 * mpicc -O2 -o pingpong pingpong.c && scripts/mpirun-rio -np 2 ./pingpong
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLongest = 1 << 20, kRounds = 200 };

static void play(unsigned char* bytes, int count, int rank) {
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 0) {
      memset(bytes, i & 0xFF, (size_t)count);
      MPI_Send(bytes, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(bytes, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (count != 0 && (bytes[0] != (i & 0xFF) || bytes[count - 1] != (i & 0xFF))) {
        fprintf(stderr, "round %d of %d bytes came back with other bytes\n", i, count);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    } else if (rank == 1) {
      MPI_Recv(bytes, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(bytes, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char* bytes = malloc(kLongest);
  for (int count = 1; count <= kLongest; count *= 8) {
    const double start = MPI_Wtime();
    play(bytes, count, rank);
    const double us = (MPI_Wtime() - start) / kRounds / 2 * 1e6;
    if (rank == 0 && argc > 1) { /* any argument: the times, which are never the same */
      printf("%8d bytes %10.2f us\n", count, us);
    }
  }
  if (rank == 0) {
    printf("all bytes came back\n");
  }
  free(bytes);
  MPI_Finalize();
  return 0;
}
