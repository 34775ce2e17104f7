/* Each rank of two sends the other one numbered messages of all sizes, with the same tag, and
 * counts those that arrive out of order. ranks: 2
 *
 *   mpi_pairs MESSAGES SECONDS
 *
 * It goes on until both have sent so many messages, and for so many seconds at least. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWindow = 64, kLongest = 100000, kTag = 3, kSmall = 200, kEach = 1000 };

struct Head {
  uint64_t number;
  uint64_t check;
};

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Bytes of a message: one of a thousand is long. */
static int length(uint64_t number) {
  const uint64_t drawn = mix(number);
  return (int)(sizeof(struct Head) +
               drawn % (number % kEach == 7 ? kLongest - sizeof(struct Head) : kSmall));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const uint64_t least = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
  const double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
  unsigned char* const out = calloc(kWindow, kLongest);
  unsigned char* const in = calloc(kWindow, kLongest);
  MPI_Request sends[kWindow];
  MPI_Request takes[kWindow];
  uint64_t count = 0;
  uint64_t wrong = 0;
  uint64_t torn = 0;
  const double begin = MPI_Wtime();
  for (int goes_on = 1; goes_on;) {
    for (int i = 0; i < kWindow; ++i) {
      MPI_Irecv(in + (size_t)i * kLongest, kLongest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                MPI_COMM_WORLD, &takes[i]);
    }
    for (int i = 0; i < kWindow; ++i) {
      unsigned char* const at = out + (size_t)i * kLongest;
      const struct Head head = {count + (uint64_t)i, mix(count + (uint64_t)i)};
      const int bytes = length(head.number);
      memcpy(at, &head, sizeof(head));
      memset(at + sizeof(head), (int)(head.check & 255), (size_t)bytes - sizeof(head));
      MPI_Isend(at, bytes, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = 0; i < kWindow; ++i, ++count) {
      MPI_Status status;
      MPI_Wait(&takes[i], &status);
      const unsigned char* const at = in + (size_t)i * kLongest;
      struct Head head;
      memcpy(&head, at, sizeof(head));
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      int is_torn = head.check != mix(head.number) || bytes != length(head.number);
      for (int k = sizeof(head); k < bytes && !is_torn; ++k) {
        is_torn = at[k] != (head.check & 255);
      }
      wrong += head.number != count;
      torn += (uint64_t)is_torn;
    }
    MPI_Waitall(kWindow, sends, MPI_STATUSES_IGNORE);
    int mine = count < least || MPI_Wtime() - begin < seconds;
    if (count / kWindow % 16 == 0) {
      MPI_Allreduce(&mine, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
  }
  uint64_t mine[3] = {count, wrong, torn};
  uint64_t all[3] = {0, 0, 0};
  MPI_Reduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"messages\": %llu, \"out_of_order\": %llu, \"torn\": %llu, \"seconds\": %.1f}\n",
           (unsigned long long)all[0], (unsigned long long)all[1], (unsigned long long)all[2],
           MPI_Wtime() - begin);
  }
  free(out);
  free(in);
  MPI_Finalize();
  return all[1] + all[2] != 0;
}
