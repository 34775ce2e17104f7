/* meet: processes meet in barriers, and say when one of them is gone.
 * usage: meet CARD COUNT BARRIERS
 * where CARD is "shm:NAME,id=DESTID" (emulated cards of one machine) or a PCI address. The COUNT
 * processes have the destIDs 1 to COUNT. */
#include <riomsg.h>
#include <riopmd.h>
#include <stdio.h>
#include <stdlib.h>

enum { kContext = 2, kRanksMax = 64, kForEverMs = 1000000000 };

static int fail(const char* what, int result) {
  fprintf(stderr, "meet: %s: %s\n", what, rio_strerror(result));
  return 1;
}

/* Other members may be late for as long as they live. */
static int meet(rio_barrier_group* group, unsigned barriers) {
  for (unsigned i = 0; i < barriers; ++i) {
    int rc = rio_barrier_arrive(group);
    /* Here is the time for work that needs no other member. */
    rc = rc == 0 ? rio_barrier_wait(group, kForEverMs) : rc;
    if (rc != 1) {
      struct rio_barrier_failure failure;
      rio_barrier_get_failure(group, &failure);
      fprintf(stderr, "meet: barrier %u: rank %d: %s\n", i, (int)failure.rank, rio_strerror(rc));
      return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  const unsigned count = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 0) : 0;
  if (count == 0 || count > kRanksMax) {
    fprintf(stderr, "usage: meet CARD COUNT BARRIERS, COUNT 1 to %d\n", kRanksMax);
    return 2;
  }
  rio_msg_address members[kRanksMax];
  for (unsigned i = 0; i < count; ++i) {
    members[i] = rio_msg_address_of(i + 1, kContext);
  }
  const struct rio_msg_options options = {.size_bytes = sizeof options, .sleeps = 1};
  rio_msg_port* port = NULL;
  rio_barrier* barrier = NULL;
  rio_barrier_group* group = NULL;
  int rc = rio_msg_open(argv[1], &options, &port);
  const unsigned rank = rc == 0 ? rio_msg_dest_id(port) - 1 : 0;
  rc = rc == 0 ? rio_barrier_open(port, kContext, &barrier) : rc;
  rc = rc == 0 ? rio_barrier_create(barrier, members, count, rank, NULL, &group) : rc;
  if (rc != 0) {
    return fail(argv[1], rc);
  }
  rc = rio_barrier_wait_ready(group, kForEverMs);
  if (rc != 1) {
    return fail("group", rc);
  }
  const unsigned barriers = (unsigned)strtoul(argv[3], NULL, 0);
  const int exit_code = meet(group, barriers);
  if (exit_code == 0) {
    printf("rank %u of %u: %u barriers\n", rank, count, barriers);
  }
  rio_barrier_destroy(group);
  rc = rio_barrier_close(barrier);
  rc = rc == 0 ? rio_msg_close(port) : rc;
  return rc == 0 ? exit_code : fail("close", rc);
}
