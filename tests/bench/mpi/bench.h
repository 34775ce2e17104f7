/* Arguments, memory and errors, for the programs of this folder. */
#ifndef RIO_TESTS_BENCH_MPI_BENCH_H
#define RIO_TESTS_BENCH_MPI_BENCH_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with exit code 2 and a text that rank 0 prints. All ranks call it. */
__attribute__((noreturn)) static inline void give_up(int rank, const char* program,
                                                     const char* text) {
  if (rank == 0) {
    fprintf(stderr, "%s: error: %s\n", program, text);
  }
  MPI_Finalize();
  exit(2);
}

/* @return the number that the text is; ends the program if it is none from least to most. */
static inline long number(int rank, const char* program, const char* text, long least, long most) {
  char* end = NULL;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) {
    char what[128];
    snprintf(what, sizeof(what), "'%.40s' is no number from %ld to %ld", text, least, most);
    give_up(rank, program, what);
  }
  return value;
}

/* @return zeroed memory that begins a page; ends the program if there is none. */
static inline void* page_memory(int rank, const char* program, size_t bytes) {
  const size_t whole = (bytes + 4095) / 4096 * 4096;
  void* const data = aligned_alloc(4096, whole > 0 ? whole : 4096);
  if (data == NULL) {
    give_up(rank, program, "not enough memory");
  }
  memset(data, 0, whole);
  return data;
}

#endif
