/* sums: a process sends as many numbers as it likes in one message; the other one adds them up.
 * usage: sums serve CARD
 *        sums ask CARD DESTID COUNT...
 * where CARD is "shm:NAME" (emulated cards of one machine) or a PCI address */
#include <errno.h>
#include <inttypes.h>
#include <riomsg.h>
#include <riopmd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kContext = 1, kPatienceMs = 10000, kForEverMs = 1000000000 };
static const uint64_t kBytesMax = UINT64_C(1) << 30;

static int fail(const char* what, int result) {
  fprintf(stderr, "sums: %s: %s\n", what, rio_strerror(result));
  return 1;
}

/* @param begun what a function that begins something has said. @return 0, or why it failed. */
static int finish(rio_msg_context* context, int begun, rio_msg_request* request,
                  struct rio_msg_done* done) {
  const int rc = begun == 0 ? rio_msg_wait_done(context, request, kPatienceMs, done) : begun;
  return rc == 1 ? done->status : rc == 0 ? -ETIMEDOUT : rc;
}

/* Any size. Sleeps until the memory is ours again. */
static int send_all(rio_msg_context* context, rio_msg_address to, const void* bytes, size_t size) {
  rio_msg_request* request = NULL;
  struct rio_msg_done done;
  const int begun = rio_msg_send_any(context, to, bytes, size, NULL, &request, &done);
  return finish(context, begun, request, &done);
}

/* The next message, in memory of ours, to be freed; sleeps until it comes. */
static int receive(rio_msg_context* context, uint32_t patience_ms, rio_msg_address* source,
                   void** bytes, size_t* size) {
  struct rio_msg_message message;
  rio_msg_request* request = NULL;
  struct rio_msg_done done;
  int rc = rio_msg_receive(context, &message);
  while (rc == 0 && rio_msg_wait(context, patience_ms) == 1) {
    rc = rio_msg_receive(context, &message);
  }
  if (rc != 1) {
    return rc == 0 ? -ETIMEDOUT : rc;
  }
  *source = message.source;
  *size = message.size_bytes;
  *bytes = malloc(*size + 1);
  if (*bytes == NULL) {
    rio_msg_release(context, &message); /* not wanted: its sender is told */
    return -ENOMEM;
  }
  /* A long one is moved only now, since we have said where to. */
  rc = rio_msg_take(context, &message, *bytes, *size, NULL, &request, &done);
  return finish(context, rc, request, &done);
}

static int serve(rio_msg_context* context) {
  printf("serving at destID %u\n", (unsigned)(rio_msg_self(context) >> 8));
  fflush(stdout);
  for (;;) {
    rio_msg_address source = 0;
    void* bytes = NULL;
    size_t size = 0;
    uint64_t sum = 0;
    int rc = receive(context, kForEverMs, &source, &bytes, &size);
    if (rc != 0) {
      return fail("receive", rc);
    }
    const uint64_t* const numbers = bytes;
    for (size_t i = 0; i < size / sizeof *numbers; ++i) {
      sum += numbers[i];
    }
    free(bytes);
    if (size == 0) { /* an empty message ends it */
      return 0;
    }
    rc = send_all(context, source, &sum, sizeof sum);
    if (rc != 0) {
      return fail("send", rc);
    }
  }
}

/* Sends the numbers 1 to count. */
static int ask(rio_msg_context* context, rio_msg_address server, size_t count) {
  uint64_t* const numbers = malloc(count * sizeof *numbers);
  rio_msg_address source = 0;
  void* answer = NULL;
  size_t size = 0;
  if (numbers == NULL) {
    return fail("numbers", -ENOMEM);
  }
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = i + 1;
  }
  int rc = send_all(context, server, numbers, count * sizeof *numbers);
  free(numbers);
  if (rc != 0) {
    return fail("send", rc);
  }
  rc = receive(context, kPatienceMs, &source, &answer, &size);
  if (rc != 0) {
    return fail("receive", rc);
  }
  uint64_t sum = 0;
  memcpy(&sum, answer, size < sizeof sum ? size : sizeof sum);
  free(answer);
  printf("1 to %zu: %" PRIu64 "\n", count, sum);
  return 0;
}

int main(int argc, char** argv) {
  const int serves = argc == 3 && strcmp(argv[1], "serve") == 0;
  if (!serves && (argc < 5 || strcmp(argv[1], "ask") != 0)) {
    fprintf(stderr, "usage: sums serve CARD | sums ask CARD DESTID COUNT...\n");
    return 2;
  }
  const struct rio_msg_options options = {.size_bytes = sizeof options, .sleeps = 1};
  rio_msg_port* port = NULL;
  rio_msg_context* context = NULL;
  int rc = rio_msg_open(argv[2], &options, &port);
  if (rc != 0) {
    return fail(argv[2], rc);
  }
  rc = rio_msg_context_open(port, kContext, &context);
  rc = rc == 0 ? rio_msg_accept_long(context, kBytesMax) : rc;
  if (rc != 0) {
    return fail("context", rc);
  }
  int exit_code = serves ? serve(context) : 0;
  const rio_msg_address server =
      serves ? 0 : rio_msg_address_of((uint32_t)strtoul(argv[3], NULL, 0), kContext);
  if (server == rio_msg_self(context)) { /* it was free: no server has it */
    fprintf(stderr, "sums: destID %u is our own; start the server first\n", server >> 8);
    exit_code = 1;
  }
  for (int i = 4; i < argc && exit_code == 0; ++i) {
    exit_code = ask(context, server, strtoul(argv[i], NULL, 0));
  }
  rc = serves || exit_code != 0 ? 0 : send_all(context, server, NULL, 0);
  rc = rc == 0 ? rio_msg_context_close(context) : rc;
  rc = rc == 0 ? rio_msg_close(port) : rc; /* waits until what was sent has arrived */
  return rc == 0 ? exit_code : fail("close", rc);
}
