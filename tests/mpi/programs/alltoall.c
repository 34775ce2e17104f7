/* Alltoall, its v- and w-variants, blocking and not. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kMost = 20000 };

static unsigned char *out, *in;
static int *counts, *places;
static MPI_Datatype* types;

static void fill_all(int count, int message) {
  for (int r = 0; r < check_size; ++r) {
    counts[r] = count;
    places[r] = r * kMost;
    types[r] = MPI_BYTE;
    fill(out + r * count, (size_t)count, check_rank, message + r);
  }
  memset(in, 0, (size_t)check_size * kMost);
}
static void expect_all(int count, int message, int step) {
  for (int r = 0; r < check_size; ++r) {
    expect_bytes(in + r * step, (size_t)count, r, message + check_rank);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  out = malloc((size_t)check_size * kMost);
  in = malloc((size_t)check_size * kMost);
  counts = malloc(sizeof(int) * (size_t)check_size);
  places = malloc(sizeof(int) * (size_t)check_size);
  int* from = malloc(sizeof(int) * (size_t)check_size);
  types = malloc(sizeof(MPI_Datatype) * (size_t)check_size);
  const int sizes[] = {0, 1, 8, 100, 4049, kMost};
  for (int s = 0; s < 6; ++s) {
    const int count = sizes[s];
    MPI_Request request;
    for (int r = 0; r < check_size; ++r) {
      from[r] = r * count;
    }
    fill_all(count, s);
    MPI_Alltoall(out, count, MPI_BYTE, in, count, MPI_BYTE, MPI_COMM_WORLD);
    expect_all(count, s, count);
    fill_all(count, s + 1);
    MPI_Ialltoall(out, count, MPI_BYTE, in, count, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_all(count, s + 1, count);
    fill_all(count, s + 2);
    MPI_Alltoallv(out, counts, from, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect_all(count, s + 2, kMost);
    fill_all(count, s + 3);
    MPI_Alltoallw(out, counts, from, types, in, counts, places, types, MPI_COMM_WORLD);
    expect_all(count, s + 3, kMost);
    fill_all(count, s + 4);
    MPI_Ialltoallv(out, counts, from, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_all(count, s + 4, kMost);
  }
  return end();
}
