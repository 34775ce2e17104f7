/* messages: one process sends lines to a context of another, which sends them back.
 * usage: messages serve CARD
 *        messages ask CARD DESTID TEXT...
 * where CARD is "shm:NAME" (emulated cards of one machine) or a PCI address */
#include <errno.h>
#include <riomsg.h>
#include <riopmd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kContext = 1, kPatienceMs = 10000, kForEverMs = 1000000000 };

static int fail(const char* what, int result) {
  fprintf(stderr, "messages: %s: %s\n", what, rio_strerror(result));
  return 1;
}

/* Sleeps while there is no room, or until the peer has answered. */
static int send_all(rio_msg_context* context, rio_msg_address to, const void* bytes, size_t size) {
  int rc = rio_msg_send(context, to, bytes, size);
  while (rc == -EAGAIN && rio_msg_wait(context, kPatienceMs) == 1) {
    rc = rio_msg_send(context, to, bytes, size);
  }
  return rc;
}

/* The next message, where it lies; sleeps until it comes. */
static int receive(rio_msg_context* context, struct rio_msg_message* message,
                   uint32_t patience_ms) {
  int rc = rio_msg_receive(context, message);
  while (rc == 0 && rio_msg_wait(context, patience_ms) == 1) {
    rc = rio_msg_receive(context, message);
  }
  return rc == 0 ? -ETIMEDOUT : rc;
}

static int serve(rio_msg_context* context) {
  printf("serving at destID %u\n", (unsigned)(rio_msg_self(context) >> 8));
  fflush(stdout);
  for (;;) {
    struct rio_msg_message message;
    int rc = receive(context, &message, kForEverMs);
    if (rc < 0) {
      return fail("receive", rc);
    }
    const int is_last = message.size_bytes == 0; /* an empty message ends it */
    /* Sent from where it was received: it is done with afterwards. */
    rc = is_last ? 0 : send_all(context, message.source, message.data, message.size_bytes);
    rio_msg_release(context, &message);
    if (rc != 0) {
      return fail("send", rc);
    }
    if (is_last) {
      return 0;
    }
  }
}

static int ask(rio_msg_context* context, rio_msg_address server, char** lines, int count) {
  int rc = 0;
  for (int i = 0; i < count && rc == 0; ++i) {
    struct rio_msg_message echo;
    rc = send_all(context, server, lines[i], strlen(lines[i]));
    if (rc != 0) {
      return fail("send", rc);
    }
    rc = receive(context, &echo, kPatienceMs);
    if (rc < 0) {
      return fail("receive", rc);
    }
    printf("%.*s\n", (int)echo.size_bytes, (const char*)echo.data);
    rio_msg_release(context, &echo);
    rc = 0;
  }
  rc = send_all(context, server, NULL, 0);
  return rc == 0 ? 0 : fail("send", rc);
}

int main(int argc, char** argv) {
  const int serves = argc == 3 && strcmp(argv[1], "serve") == 0;
  if (!serves && (argc < 5 || strcmp(argv[1], "ask") != 0)) {
    fprintf(stderr, "usage: messages serve CARD | messages ask CARD DESTID TEXT...\n");
    return 2;
  }
  /* Members that are zero have their defaults. */
  const struct rio_msg_options options = {.size_bytes = sizeof options, .sleeps = 1};
  rio_msg_port* port = NULL;
  rio_msg_context* context = NULL;
  int rc = rio_msg_open(argv[2], &options, &port);
  if (rc != 0) {
    return fail(argv[2], rc);
  }
  rc = rio_msg_context_open(port, kContext, &context);
  if (rc != 0) {
    return fail("context", rc);
  }
  int exit_code = 0;
  if (serves) {
    exit_code = serve(context);
  } else {
    const uint32_t dest_id = (uint32_t)strtoul(argv[3], NULL, 0);
    if (dest_id == rio_msg_dest_id(port)) { /* it was free: no server has it */
      fprintf(stderr, "messages: destID %u is our own; start the server first\n", dest_id);
      exit_code = 1;
    } else {
      exit_code = ask(context, rio_msg_address_of(dest_id, kContext), argv + 4, argc - 4);
    }
  }
  rc = rio_msg_context_close(context);
  rc = rc == 0 ? rio_msg_close(port) : rc; /* waits until what was sent has arrived */
  return rc == 0 ? exit_code : fail("close", rc);
}
