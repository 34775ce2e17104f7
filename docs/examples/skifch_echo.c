/* skifch_echo: one process sends lines, another sends them back.
 * usage: skifch_echo serve CARD
 *        skifch_echo ask CARD DESTID TEXT...
 * where CARD is "shm:NAME" (emulated cards of one machine) or a PCI address */
#include <errno.h>
#include <skifch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kChannel = 1, kPatienceSeconds = 10 };

static int fail(const char* what) {
  fprintf(stderr, "skifch_echo: %s: %s\n", what, strerror(errno));
  return 1;
}

/* Whether to try again: there was no room, or nothing has come; but not for ever. */
static int again(time_t end) {
  return errno == EAGAIN && time(NULL) < end;
}

static int send_all(struct SkifCh* channel, netaddr_t to, const void* bytes, size_t size) {
  struct iovec piece = {(void*)bytes, size};
  const time_t end = time(NULL) + kPatienceSeconds;
  ssize_t sent = -1;
  do {
    sent = SkifCh_Send(channel, to, &piece, 1);
  } while (sent < 0 && again(end));
  return sent == (ssize_t)size ? 0 : fail("send");
}

/* The next message, where it lies. */
static ssize_t receive(struct SkifCh* channel, struct iovec* message, int wait_for_ever) {
  struct iovec cont[SKIFCH_CONT_SIZE];
  const time_t end = time(NULL) + kPatienceSeconds;
  int count = 0;
  ssize_t size = -1;
  do {
    size = SkifCh_Recv(channel, cont, &count);
  } while (size < 0 && (wait_for_ever ? errno == EAGAIN : again(end)));
  *message = cont[0];
  return size;
}

static int serve(struct SkifCh* channel) {
  printf("serving at destID %u\n", (unsigned)(SkifCh_Self(channel) >> 8));
  fflush(stdout);
  for (;;) {
    struct iovec message;
    const ssize_t size = receive(channel, &message, 1);
    if (size < 0) {
      return fail("receive");
    }
    if (size == 0) { /* an empty message ends it */
      SkifCh_RecvComp(channel);
      return 0;
    }
    /* Sent from where it was received: it is done with afterwards. */
    if (send_all(channel, SkifCh_Source(channel), message.iov_base, message.iov_len) != 0) {
      return 1;
    }
    SkifCh_RecvComp(channel);
  }
}

static int ask(struct SkifCh* channel, netaddr_t to, int count, char** texts) {
  for (int i = 0; i < count; ++i) {
    struct iovec message;
    if (send_all(channel, to, texts[i], strlen(texts[i])) != 0) {
      return 1;
    }
    if (receive(channel, &message, 0) < 0) {
      return fail("receive");
    }
    printf("%.*s\n", (int)message.iov_len, (const char*)message.iov_base);
    SkifCh_RecvComp(channel);
  }
  return send_all(channel, to, "", 0);
}

int main(int argc, char** argv) {
  const int serves = argc == 3 && strcmp(argv[1], "serve") == 0;
  if (!serves && (argc < 5 || strcmp(argv[1], "ask") != 0)) {
    fprintf(stderr, "usage: %s serve CARD | ask CARD DESTID TEXT...\n", argv[0]);
    return 2;
  }
  struct SkifCh* channel = SkifCh_Open(argv[2], kChannel, NULL);
  if (channel == NULL) {
    return fail(argv[2]);
  }
  int rc = 0;
  if (serves) {
    rc = serve(channel);
  } else {
    const uint32_t dest_id = (uint32_t)strtoul(argv[3], NULL, 0);
    if (SkifCh_Addr(dest_id, kChannel) == SkifCh_Self(channel)) { /* free: no server has it */
      fprintf(stderr, "skifch_echo: destID %u is our own; start the server first\n", dest_id);
      rc = 1;
    } else {
      rc = ask(channel, SkifCh_Addr(dest_id, kChannel), argc - 4, argv + 4);
    }
  }
  SkifCh_Close(channel);
  return rc;
}
