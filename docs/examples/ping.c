/* ping: send messages through a card to itself, and verify what comes back.
 * usage: ping [CARD], where CARD is "emu:loop" (the default) or a PCI address */
#include <errno.h>
#include <riopmd.h>
#include <stdio.h>
#include <string.h>

enum { kCount = 8, kSize = 64, kDestId = 5, kStride = RIO_MESSAGE_BYTES + 256 };

static int fail(const char* what, int result) {
  fprintf(stderr, "ping: %s: %s\n", what, rio_strerror(result));
  return 1;
}

/* Memory: kCount buffers to receive into, then kCount to send from. */
static unsigned char* buffer(const struct rio_memory* memory, int i) {
  return (unsigned char*)memory->va + (size_t)i * kStride;
}

static int run(rio_card* card, const struct rio_memory* memory) {
  struct rio_rx_buffer empty[kCount];
  struct rio_tx_message ping[kCount];
  for (int i = 0; i < kCount; ++i) {
    empty[i] = (struct rio_rx_buffer){
        .iova = memory->iova + (uint64_t)i * kStride,
        .cookie = (uint64_t)i, /* comes back with the message that is in the buffer */
    };
    ping[i] = (struct rio_tx_message){
        .iova = memory->iova + (uint64_t)(kCount + i) * kStride,
        .cookie = (uint64_t)i,
        .dest_id = kDestId,
        .length_bytes = kSize,
    };
    memset(buffer(memory, kCount + i), 'a' + i, kSize);
  }
  if (rio_rx_post(card, empty, kCount) != kCount || rio_tx_burst(card, ping, kCount) != kCount) {
    return fail("post", -ENOSPC);
  }

  int sent = 0;
  int received = 0;
  for (long polls = 0; sent < kCount || received < kCount; ++polls) {
    struct rio_tx_done done[kCount];
    struct rio_rx_message message[kCount];
    const int reaped = rio_tx_reap(card, done, kCount);
    const int got = rio_rx_burst(card, message, kCount);
    for (int i = 0; i < reaped; ++i) {
      if (done[i].status != RIO_OK) {
        fprintf(stderr, "ping: message %d: %s\n", (int)done[i].cookie,
                rio_status_name(done[i].status));
        return 1;
      }
    }
    for (int i = 0; i < got; ++i) {
      /* One sender and one receiver, but no promise of order: the bytes say which ping it is. */
      const unsigned char* bytes = buffer(memory, (int)message[i].cookie);
      if (message[i].status != RIO_OK || message[i].length_bytes != kSize || bytes[0] < 'a' ||
          bytes[0] >= 'a' + kCount || memcmp(bytes, bytes + 1, kSize - 1) != 0) {
        fprintf(stderr, "ping: message from %u: %s, %u bytes\n", message[i].source,
                rio_status_name(message[i].status), message[i].length_bytes);
        return 1;
      }
    }
    sent += reaped;
    received += got;
    if (polls % 100000000 == 99999999 && rio_gone(card)) {
      return fail("poll", -ENODEV);
    }
  }
  printf("ping: %d messages of %d bytes, all verified\n", received, kSize);
  return 0;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "emu:loop";
  /* Members that are zero have their defaults. */
  const struct rio_options options = {.size_bytes = sizeof options, .dest_id = kDestId};
  rio_card* card = NULL;
  int rc = rio_open(name, &options, &card);
  if (rc != 0) {
    return fail(name, rc);
  }
  struct rio_memory memory;
  int exit_code = 1;
  if ((rc = rio_wait_link(card, 1000)) != 0) {
    fail("link", rc);
  } else if ((rc = rio_alloc(card, (size_t)2 * kCount * kStride, 4096, &memory)) != 0) {
    fail("memory", rc);
  } else {
    exit_code = run(card, &memory);
  }
  rc = rio_close(card); /* stops the card first, then frees the memory */
  return rc != 0 ? fail("close", rc) : exit_code;
}
