/* Pairs of ranks that send and receive; see mpi_sizes.c. */
#include "tests/bench/mpi/sizes.h"

enum { kTag = 7, kAckTag = 8 };

static void send_one(struct run* run) {
  MPI_Send(run->out, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD);
}

static void receive_one(struct run* run) {
  MPI_Recv(run->in, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void latency(struct run* run) {
  if (run->sends) {
    send_one(run);
    receive_one(run);
  } else {
    receive_one(run);
    send_one(run);
  }
}

static void answer(struct run* run) {
  char ack = 0;
  if (run->sends) {
    MPI_Recv(&ack, 1, MPI_CHAR, run->peer, kAckTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&ack, 1, MPI_CHAR, run->peer, kAckTag, MPI_COMM_WORLD);
  }
}

static void begin_sends(struct run* run, MPI_Request* requests) {
  for (int i = 0; i < kWindow; ++i) {
    MPI_Isend(run->out, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, &requests[i]);
  }
}

static void begin_receives(struct run* run) {
  for (int i = 0; i < kWindow; ++i) {
    MPI_Irecv(run->in, run->bytes, MPI_CHAR, run->peer, kTag, MPI_COMM_WORLD, &run->requests[i]);
  }
}

static void one_way(struct run* run) {
  if (run->sends) {
    begin_sends(run, run->requests);
  } else {
    begin_receives(run);
  }
  MPI_Waitall(kWindow, run->requests, MPI_STATUSES_IGNORE);
  answer(run);
}

static void both_ways(struct run* run) {
  begin_receives(run);
  begin_sends(run, run->requests + kWindow);
  MPI_Waitall(2 * kWindow, run->requests, MPI_STATUSES_IGNORE);
  answer(run);
}

const struct test kTwoSided[] = {
    {"latency", latency, 2, kPerRound, 1, 0},
    {"bandwidth", one_way, kWindow, kPerPair, 1, 0},
    {"both", both_ways, 2 * kWindow, kPerPair, 1, 0},
    {"rate", one_way, kWindow, kPerPair, 1, 0},
    {NULL, NULL, 0, kPerRound, 0, 0},
};
