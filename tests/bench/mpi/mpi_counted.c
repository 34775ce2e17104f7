/* A ping-pong of one byte in which no rank polls in vain: scripts/bench mpi counts the instructions
 * of PMPI_Send and PMPI_Recv under callgrind.
 *
 *   mpirun -np 2 … mpi_counted FOLDER COUNT
 *
 * FOLDER  has two named pipes, 0 and 1: a rank sleeps in the one of its number, outside MPI, until
 *         its peer has come back from MPI_Send. So its MPI_Recv finds the message there.
 * COUNT   ping-pongs, 1 to 1000000 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kTag = 7, kCountMax = 1000000 };

struct run {
  int rank;
  int pipes[2];
  char data;
};

static void give_up(const char* text) {
  fprintf(stderr, "mpi_counted: error: %s\n", text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void say_sent(struct run* run) {
  const char sent = 1;
  MPI_Send(&run->data, 1, MPI_CHAR, 1 - run->rank, kTag, MPI_COMM_WORLD);
  if (write(run->pipes[1 - run->rank], &sent, 1) != 1) {
    give_up("a pipe takes nothing");
  }
}

static void take_sent(struct run* run) {
  char sent = 0;
  if (read(run->pipes[run->rank], &sent, 1) != 1) {
    give_up("a pipe gives nothing");
  }
  MPI_Recv(&run->data, 1, MPI_CHAR, 1 - run->rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  struct run run = {0, {-1, -1}, 0};
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  if (ranks != 2 || count < 1 || count > kCountMax) {
    give_up("usage: mpirun -np 2 mpi_counted FOLDER COUNT, with 1 to 1000000");
  }
  for (int i = 0; i < 2; ++i) {
    char name[4096];
    snprintf(name, sizeof(name), "%s/%d", argv[1], i);
    run.pipes[i] = open(name, O_RDWR);
    if (run.pipes[i] < 0) {
      give_up("the folder has no pipes 0 and 1; make them with mkfifo");
    }
  }
  /* Messages, not a barrier, which may go another way: a peer that sleeps answers no first message.
   */
  char other = 0;
  MPI_Sendrecv(&run.data, 1, MPI_CHAR, 1 - run.rank, kTag, &other, 1, MPI_CHAR, 1 - run.rank, kTag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (long i = 0; i < count; ++i) {
    if (run.rank == 0) {
      say_sent(&run);
      take_sent(&run);
    } else {
      take_sent(&run);
      say_sent(&run);
    }
  }
  MPI_Finalize();
  return 0;
}
