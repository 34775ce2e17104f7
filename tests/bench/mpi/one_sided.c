/* Rank 0 writes and reads the window of rank 1, which waits in a barrier; see mpi_sizes.c. */
#include "tests/bench/mpi/sizes.h"

static void put(struct run* run) {
  MPI_Put(run->out, run->bytes, MPI_CHAR, run->peer, 0, run->bytes, MPI_CHAR, run->window);
}

static void get(struct run* run) {
  MPI_Get(run->in, run->bytes, MPI_CHAR, run->peer, 0, run->bytes, MPI_CHAR, run->window);
}

static void flushed(struct run* run, void (*call)(struct run* run), int count) {
  if (run->sends) {
    for (int i = 0; i < count; ++i) {
      call(run);
    }
    MPI_Win_flush(run->peer, run->window);
  }
}

static void put_one(struct run* run) {
  flushed(run, put, 1);
}

static void get_one(struct run* run) {
  flushed(run, get, 1);
}

static void put_many(struct run* run) {
  flushed(run, put, kWindow);
}

static void get_many(struct run* run) {
  flushed(run, get, kWindow);
}

const struct test kOneSided[] = {
    {"put", put_one, 1, kPerRound, 1, 1},
    {"get", get_one, 1, kPerRound, 1, 1},
    {"put-bandwidth", put_many, kWindow, kPerRound, 1, 1},
    {"get-bandwidth", get_many, kWindow, kPerRound, 1, 1},
    {NULL, NULL, 0, kPerRound, 0, 0},
};
