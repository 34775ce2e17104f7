/* Shared by the programs: a digest of all received data, and values that are checked. */
#ifndef RIO_TESTS_MPI_CHECK_H
#define RIO_TESTS_MPI_CHECK_H

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank, check_size;
static uint64_t check_digest = 1469598103934665603u;

/* FNV-1a, over data that was received in an order that MPI guarantees. */
static inline void digest(const void* bytes, size_t count) {
  const unsigned char* at = (const unsigned char*)bytes;
  for (size_t i = 0; i < count; ++i) {
    check_digest = (check_digest ^ at[i]) * 1099511628211u;
  }
}
static inline void digest_long(long value) {
  digest(&value, sizeof(value));
}
static inline void digest_status(const MPI_Status* status, MPI_Datatype type) {
  int count = 0;
  MPI_Get_count(status, type, &count);
  digest_long(status->MPI_SOURCE);
  digest_long(status->MPI_TAG);
  digest_long(count);
}

/* A wrong value ends the job. */
static inline void expect(long found, long expected, const char* what, long index) {
  if (found != expected) {
    fprintf(stderr, "rank %d: %s %ld is %ld, not %ld\n", check_rank, what, index, found, expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Bytes that tell whose message they are of, and where in it. */
static inline unsigned char byte_of(int rank, int message, size_t at) {
  return (unsigned char)(at * 131 + at / 251 + (size_t)rank * 17 + (size_t)message * 29 + 7);
}
static inline void fill(unsigned char* bytes, size_t count, int rank, int message) {
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = byte_of(rank, message, i);
  }
}
static inline void expect_bytes(const unsigned char* bytes, size_t count, int rank, int message) {
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] != byte_of(rank, message, i)) {
      expect(bytes[i], byte_of(rank, message, i), "byte", (long)i);
    }
  }
  digest(bytes, count);
}

static inline void begin(int* argc, char*** argv) {
  if (MPI_Init(argc, argv) != MPI_SUCCESS) {
    exit(1);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}
/* A window onto memory of ours, all zeros: MPI_Win_allocate() would take memory that the ranks of a
 * node share, and pass the network by. */
static inline void* make_window(size_t count, size_t value_bytes, MPI_Win* win) {
  void* const memory = calloc(count, value_bytes);
  MPI_Win_create(memory, (MPI_Aint)(count * value_bytes), (int)value_bytes, MPI_INFO_NULL,
                 MPI_COMM_WORLD, win);
  return memory;
}

/* Rank 0 prints the digests of all, in their order. */
static inline int end(void) {
  uint64_t* all = (uint64_t*)malloc(sizeof(uint64_t) * (size_t)check_size);
  MPI_Gather(&check_digest, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (check_rank == 0) {
    check_digest = 1469598103934665603u;
    digest(all, sizeof(uint64_t) * (size_t)check_size);
    printf("digest %016" PRIx64 "\n", check_digest);
  }
  free(all);
  MPI_Finalize();
  return 0;
}

static const size_t kSizes[] = {0,    1,    7,     8,     64,    255,   256,
                                257,  4047, 4048,  4049,  4071,  4072,  4073,
                                4096, 4097, 16383, 16384, 16385, 65536, 1048576};
enum { kSizeCount = sizeof(kSizes) / sizeof(kSizes[0]), kLongest = 1048576 };

#endif
