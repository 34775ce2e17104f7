/* Reductions by the operations that there are, and by two of the user's. ranks: 2 4 8 */
#include "tests/mpi/programs/check.h"

enum { kCount = 20000 };

/* 2x2 matrices modulo 1009: not commutative. */
static void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const int* a = (const int*)in;
  int* b = (int*)inout;
  for (int i = 0; i < *count; ++i, a += 4, b += 4) {
    const int c[4] = {(a[0] * b[0] + a[1] * b[2]) % 1009, (a[0] * b[1] + a[1] * b[3]) % 1009,
                      (a[2] * b[0] + a[3] * b[2]) % 1009, (a[2] * b[1] + a[3] * b[3]) % 1009};
    memcpy(b, c, sizeof(c));
  }
}

/* Sums of numbers that are rounded: all ranks have the same bits. */
static void sum_fractions(int count) {
  enum { kFractions = 12000 };
  static double mine[kFractions], sums[kFractions];
  static uint64_t own[kFractions], first[kFractions];
  for (int i = 0; i < count; ++i) {
    mine[i] = 1.0 / (3 + check_rank * 7 + i);
  }
  MPI_Allreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  memcpy(own, sums, sizeof(own));
  memcpy(first, own, sizeof(own));
  MPI_Bcast(first, count, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  digest_long(memcmp(first, own, sizeof(own)) == 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  long* out = malloc(sizeof(long) * kCount);
  long* in = malloc(sizeof(long) * kCount);
  /* Up to 4064 bytes are one message of mtl/rio; above, ranks reduce pieces of the vector, or two
   * ranks all of it. */
  enum { kCounts = 9 };
  const int counts[kCounts] = {1, 20, 343, 508, 509, 513, 3000, 7001, kCount};
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_LAND,
                        MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  for (int o = 0; o < 10; ++o) {
    for (int c = 0; c < kCounts; ++c) {
      const int count = counts[c];
      for (int i = 0; i < count; ++i) {
        out[i] = (i * 7 + check_rank * 3) % 11 - (o % 2);
      }
      MPI_Allreduce(out, in, count, MPI_LONG, ops[o], MPI_COMM_WORLD);
      digest(in, sizeof(long) * (size_t)count);
      memset(in, 0, sizeof(long) * kCount);
      MPI_Reduce(out, in, count, MPI_LONG, ops[o], check_size - 1, MPI_COMM_WORLD);
      digest(in, sizeof(long) * (size_t)count);
      MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_LONG, ops[o], MPI_COMM_WORLD);
      digest(out, sizeof(long) * (size_t)count);
    }
  }
  sum_fractions(100);
  sum_fractions(2000);
  sum_fractions(12000);
  MPI_Datatype matrix;
  MPI_Op product;
  MPI_Type_contiguous(4, MPI_INT, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &product);
  int mine[40], all[40];
  for (int i = 0; i < 40; ++i) {
    mine[i] = (check_rank * 13 + i * 5) % 1009;
  }
  MPI_Allreduce(mine, all, 10, matrix, product, MPI_COMM_WORLD);
  digest(all, sizeof(all));
  MPI_Scan(mine, all, 10, matrix, product, MPI_COMM_WORLD);
  digest(all, sizeof(all));
  struct {
    double value;
    int rank;
  } best = {(check_rank * 7) % 5, check_rank}, got;
  MPI_Allreduce(&best, &got, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  digest_long((long)got.value);
  digest_long(got.rank);
  MPI_Op_free(&product);
  MPI_Type_free(&matrix);
  return end();
}
