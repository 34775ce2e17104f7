/* Derived types, different on both sides with the same signature. ranks: 2 */
#include "tests/mpi/programs/check.h"

enum { kSide = 120 };

static void commit_all(MPI_Datatype types[5]) {
  MPI_Type_vector(kSide, kSide / 2, kSide, MPI_INT, &types[0]);
  int lengths[kSide];
  int places[kSide];
  for (int i = 0; i < kSide; ++i) {
    lengths[i] = kSide / 2;
    places[i] = (kSide - 1 - i) * kSide + i % (kSide / 2);
  }
  MPI_Type_indexed(kSide, lengths, places, MPI_INT, &types[1]);
  const int sizes[2] = {kSide, kSide};
  const int parts[2] = {kSide / 2, kSide};
  const int starts[2] = {kSide / 4, 0};
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &types[2]);
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Datatype wide;
  MPI_Type_create_resized(pair, 0, 4 * (MPI_Aint)sizeof(int), &wide);
  MPI_Type_contiguous(kSide * kSide / 4, wide, &types[3]);
  MPI_Type_contiguous(kSide * kSide / 2, MPI_INT, &types[4]);
  for (int i = 0; i < 5; ++i) {
    MPI_Type_commit(&types[i]);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Datatype types[5];
  commit_all(types);
  int* out = malloc(sizeof(int) * kSide * kSide);
  int* in = malloc(sizeof(int) * kSide * kSide);
  for (int i = 0; i < kSide * kSide; ++i) {
    out[i] = i * 3 + check_rank;
  }
  const int other = 1 - check_rank;
  for (int from = 0; from < 5 && check_rank < 2; ++from) {
    for (int to = 0; to < 5; ++to) {
      MPI_Status status;
      memset(in, 0, sizeof(int) * kSide * kSide);
      MPI_Sendrecv(out, 1, types[from], other, 1, in, 1, types[to], other, 1, MPI_COMM_WORLD,
                   &status);
      int elements = 0;
      MPI_Get_elements(&status, types[to], &elements);
      expect(elements, kSide * kSide / 2, "elements of type", to);
      digest(in, sizeof(int) * kSide * kSide);
    }
  }
  char packed[4096];
  int at = 0;
  double value = check_rank + 0.5;
  MPI_Pack(out, 100, MPI_INT, packed, sizeof(packed), &at, MPI_COMM_WORLD);
  MPI_Pack(&value, 1, MPI_DOUBLE, packed, sizeof(packed), &at, MPI_COMM_WORLD);
  if (check_rank < 2) {
    MPI_Sendrecv_replace(packed, at, MPI_PACKED, other, 2, other, 2, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    int end_at = 0;
    MPI_Unpack(packed, at, &end_at, in, 100, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(packed, at, &end_at, &value, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    expect(in[99], 99 * 3 + other, "unpacked", 99);
    expect((long)(value * 2), 2 * other + 1, "unpacked double", 0);
  }
  return end();
}
