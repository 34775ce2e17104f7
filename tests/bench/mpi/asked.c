/* Measurements that another program chooses, one at a time, so that it can let two transports run
 * in turn within milliseconds; see mpi_sizes.c.
 *
 * FOLDER has a named pipe for each rank, of its number, and one of the name `answers`. Each rank
 * reads the same lines from its own:
 *
 *   TEST BYTES WARM ROUNDS
 *
 * TEST and BYTES are those of mpi_sizes. WARM rounds, 0 to 2^24, are not timed; ROUNDS are 1 to
 * 2^24. When a rank is done, it writes one JSON object to `answers`, and sleeps in its pipe,
 * outside MPI: once all ranks have answered, none of them takes a core from the other transport.
 * The end of a rank's pipe ends the program. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/bench/mpi/sizes.h"

enum { kPathMax = 4096, kLineMax = 128, kNameMax = 32 };

static FILE* open_pipe(const struct run* run, const char* program, const char* folder,
                       const char* name, const char* mode) {
  char path[kPathMax];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* const file = fopen(path, mode);
  if (file == NULL) {
    fprintf(stderr, "%s: error: rank %d cannot open %s; make it with mkfifo\n", program, run->rank,
            path);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return file;
}

/* Reads a command. @return the test, or NULL if the line is none. */
static const struct test* command_of(const char* line, struct run* run, int* warm, int* rounds) {
  char name[kNameMax];
  if (sscanf(line, "%31s %d %d %d", name, &run->bytes, warm, rounds) != 4) {
    return NULL;
  }
  const struct test* const test = test_named(name);
  const int fits = test != NULL && run->bytes >= 1 && run->bytes <= kBytesMax &&
                   run->bytes % test->element == 0 && (!test->one_sided || run->ranks == 2) &&
                   *warm >= 0 && *warm <= kRoundsMax && *rounds >= 1 && *rounds <= kRoundsMax;
  return fits ? test : NULL;
}

static void answer(const struct test* test, struct run* run, int warm, int rounds, FILE* answers) {
  if (test->one_sided && run->window == MPI_WIN_NULL) {
    open_window(run);
  }
  if (warm > 0) {
    (void)timed(test, run, warm);
  }
  const double seconds = timed(test, run, rounds);
  fprintf(answers, "{\"rank\": %d, \"messages\": %.0f, \"seconds\": %.9f}\n", run->rank,
          messages_of(test, run, rounds), seconds);
  fflush(answers);
}

void measure_asked(struct run* run, const char* program, const char* folder) {
  char own[kNameMax];
  char line[kLineMax];
  snprintf(own, sizeof(own), "%d", run->rank);
  FILE* const commands = open_pipe(run, program, folder, own, "r");
  FILE* const answers = open_pipe(run, program, folder, "answers", "w");
  while (fgets(line, sizeof(line), commands) != NULL) {
    int warm = 0;
    int rounds = 0;
    const struct test* const test = command_of(line, run, &warm, &rounds);
    if (test == NULL) {
      fprintf(stderr, "%s: error: no command: %s", program, line);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    answer(test, run, warm, rounds, answers);
  }
  fclose(commands);
  fclose(answers);
}
