/* Everything that riopmd.h can do, from plain C: messages of all kinds, dedicated queues,
 * doorbells, remote memory, maintenance, interrupts, several queue pairs, barriers, rails. */
#include <errno.h>
#include <poll.h>
#include <riopmd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                      \
  do {                                                                   \
    if (!(what)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

enum { kId = 6, kPolls = 1000000 };

static rio_card* open_card(const char* name, struct rio_options options) {
  rio_card* card = NULL;
  options.size_bytes = sizeof options;
  options.dest_id = kId;
  CHECK(rio_open(name, &options, &card) == 0);
  CHECK(rio_wait_link(card, 1000) == 0);
  return card;
}

static struct rio_tx_done reap(rio_card* card) {
  struct rio_tx_done done = {.status = 255};
  for (int i = 0; i < kPolls && rio_tx_reap(card, &done, 1) == 0; ++i) {
    sched_yield(); /* to the card's thread, if it has one */
  }
  return done;
}

static struct rio_rx_message receive(rio_card* card) {
  struct rio_rx_message message = {.status = 255};
  for (int i = 0; i < kPolls && rio_rx_burst(card, &message, 1) == 0; ++i) {
    sched_yield();
  }
  return message;
}

static void messages(rio_card* card, const struct rio_memory* memory) {
  unsigned char* bytes = memory->va;
  for (int i = 0; i < 4096; ++i) {
    bytes[4096 + i] = (unsigned char)(i * 7);
  }
  const struct rio_rx_buffer buffer = {.iova = memory->iova, .cookie = 11};
  const struct rio_tx_message whole = {
      .iova = memory->iova + 4096, .cookie = 12, .dest_id = kId, .length_bytes = 4096, .mbox = 3};
  CHECK(rio_rx_post(card, &buffer, 1) == 1);
  CHECK(rio_tx_burst(card, &whole, 1) == 1);
  struct rio_rx_message got = receive(card);
  CHECK(got.status == RIO_OK && got.cookie == 11 && got.source == kId && got.dest_id == kId);
  CHECK(got.length_bytes == 4096 && got.mbox == 3 && got.segments == 16);
  CHECK(memcmp(bytes, bytes + 4096, 4096) == 0);
  struct rio_tx_done done = reap(card);
  CHECK(done.status == RIO_OK && done.cookie == 12);

  const struct rio_tx_message small = {.data = "inline",
                                       .cookie = 13,
                                       .dest_id = kId,
                                       .length_bytes = 6,
                                       .mbox = 63,
                                       .flags = RIO_TX_INLINE | RIO_TX_SSIZE_8 | 2};
  CHECK(rio_rx_post(card, &buffer, 1) == 1);
  CHECK(rio_tx_burst(card, &small, 1) == 1);
  got = receive(card);
  CHECK(got.status == RIO_OK && got.length_bytes == 8 && got.mbox == 63);
  CHECK(memcmp(bytes, "inline\0", 8) == 0);
  CHECK(reap(card).cookie == 13);

  const struct rio_tx_gather gather = {.cookie = 14,
                                       .iova = {memory->iova + 4096, memory->iova + 8192 - 8},
                                       .length_bytes = {8, 8},
                                       .dest_id = kId,
                                       .count = 2};
  CHECK(rio_rx_post(card, &buffer, 1) == 1);
  CHECK(rio_tx_burst_gather(card, &gather, 1) == 1);
  CHECK(receive(card).length_bytes == 16 && reap(card).cookie == 14);
  CHECK(memcmp(bytes, bytes + 4096, 8) == 0 && memcmp(bytes + 8, bytes + 8192 - 8, 8) == 0);
}

static void dedicated(rio_card* card, const struct rio_memory* memory) {
  CHECK(rio_dedicated_open(card, 2, kId, 1) == 0);
  const struct rio_dedicated_entry entry = {.iova = memory->iova, .cookie = 21, .size_bytes = 512};
  const struct rio_tx_message message = {
      .iova = memory->iova + 4096, .dest_id = kId, .length_bytes = 512, .mbox = 1};
  memset(memory->va, 0, 4096);
  CHECK(rio_dedicated_post(card, 2, &entry, 1) == 1);
  CHECK(rio_tx_burst(card, &message, 1) == 1);
  struct rio_entry_done done = {.status = 255};
  for (int i = 0; i < kPolls && rio_dedicated_reap(card, 2, &done, 1) == 0; ++i) {
  }
  CHECK(done.status == RIO_OK && done.cookie == 21 && done.bytes == 512);
  CHECK(memcmp(memory->va, (char*)memory->va + 4096, 512) == 0);
  CHECK(reap(card).status == RIO_OK);
  CHECK(rio_dedicated_close(card, 2) == 0);
}

static void doorbells(rio_card* card) {
  const struct rio_tx_message ring = {.info = 0xBEEF, .dest_id = kId, .flags = RIO_TX_DOORBELL};
  CHECK(rio_tx_burst(card, &ring, 1) == 1);
  struct rio_doorbell got = {0};
  for (int i = 0; i < kPolls && rio_doorbell_burst(card, &got, 1) == 0; ++i) {
  }
  CHECK(got.info == 0xBEEF && got.source == kId);
  CHECK(reap(card).status == RIO_OK);
}

static struct rio_entry_done dma(rio_card* card, struct rio_dma_request request) {
  struct rio_entry_done done = {.status = 255};
  request.dest_id = kId;
  CHECK(rio_dma_post(card, &request, 1) == 1);
  for (int i = 0; i < kPolls && rio_dma_reap(card, &done, 1) == 0; ++i) {
  }
  return done;
}

static void remote_memory(rio_card* card) {
  /* The program's own memory, registered. */
  enum { kBytes = 16384 };
  unsigned char* own = aligned_alloc(4096, kBytes);
  uint64_t iova = 0;
  CHECK(own != NULL && rio_register(card, own, kBytes) == 0);
  CHECK(rio_iova(card, own, kBytes, &iova) == 0);
  memset(own, 0x33, 4096);
  memset(own + 4096, 0, 4096);
  const struct rio_window window = {.rio_addr = 0x100000,
                                    .size_bytes = 4096,
                                    .iova = iova + 4096,
                                    .rights = RIO_WINDOW_READ | RIO_WINDOW_WRITE};
  uint32_t index = 0;
  CHECK(rio_window_open(card, &window, &index) == 0);
  struct rio_dma_request request = {
      .rio_addr = 0x100000, .iova = iova, .cookie = 31, .length_bytes = 4096, .op = RIO_NWRITE_R};
  struct rio_entry_done done = dma(card, request);
  CHECK(done.status == RIO_OK && done.cookie == 31 && done.bytes == 4096);
  CHECK(memcmp(own, own + 4096, 4096) == 0);
  request.iova = iova + 8192;
  request.op = RIO_NREAD;
  CHECK(dma(card, request).status == RIO_OK);
  CHECK(memcmp(own, own + 8192, 4096) == 0);
  CHECK(rio_window_close(card, index) == 0);
  CHECK(dma(card, request).status == RIO_ERROR_RESPONSE);
  CHECK(rio_unregister(card, own, kBytes) == 0);
  free(own);
}

static void maintenance(rio_card* card) {
  uint32_t local[2] = {0, 0};
  uint32_t remote[2] = {1, 1};
  CHECK(rio_local_read(card, 0, local, 2, 1000) == 0);
  CHECK(rio_maint_read(card, kId, 0, 0, remote, 2, 1000) == 0);
  CHECK(local[0] == remote[0] && local[1] == remote[1]);
  const uint32_t tag = 0xC0FFEE;
  CHECK(rio_local_write(card, 0x6C, &tag, 1, 1000) == 0); /* component tag CSR */
  CHECK(rio_maint_read(card, kId, 0, 0x6C, remote, 1, 1000) == 0 && remote[0] == tag);
  CHECK(rio_maint_write(card, kId, 0, 0x6C, &local[0], 1, 1000) == 0);
  const uint32_t words[4] = {1, 2, 3, 4};
  CHECK(rio_port_write(card, kId, 0, words, 4, 1000) == 0);
  struct rio_event event = {0};
  for (int i = 0; i < kPolls; ++i) {
    if (rio_event_burst(card, &event, 1) == 1 &&
        strcmp(rio_event_name(event.type), "port-write") == 0) {
      break;
    }
  }
  CHECK(event.data[0] == 1 && event.data[3] == 4);
}

static void information(rio_card* card) {
  struct rio_info info;
  CHECK(rio_get_info(card, &info, sizeof info) == 0);
  CHECK(info.dest_id == kId && info.queue_pair == 0 && info.queue_pairs == 1 && info.emulated == 1);
  CHECK(info.link_up == 1 && info.shared_addr_align == 256 && info.dedicated_addr_align == 4096);
  CHECK(info.ring_entries_max >= 512 && info.wide == 1 && info.windows == 1);
  CHECK((info.rings & RIO_RING_BIT(RIO_RING_TX)) != 0);
  struct rio_stats stats;
  CHECK(rio_get_stats(card, RIO_RING_TX, &stats) == 0);
  CHECK(stats.messages >= 5 && stats.failed == 0 && stats.rejected == 0);
  CHECK(rio_outstanding(card, RIO_RING_TX) == 0 && rio_free_count(card, RIO_RING_TX) == 512);
}

static void queue_pairs(void) {
  rio_card* first = open_card("emu:loop,qps=2", (struct rio_options){.tx_entries = 64});
  const struct rio_options options = {.size_bytes = sizeof options, .queue_pair = 1};
  rio_card* second = NULL;
  CHECK(rio_open_queue_pair(first, &options, &second) == 0);
  struct rio_memory memory;
  CHECK(rio_alloc(second, 4096, 4096, &memory) == 0);
  const struct rio_rx_buffer buffer = {.iova = memory.iova};
  CHECK(rio_rx_post(second, &buffer, 1) == 1);
  const struct rio_tx_message message = {
      .data = "hello", .dest_id = kId + 1, .length_bytes = 6, .flags = RIO_TX_INLINE};
  CHECK(rio_tx_burst(first, &message, 1) == 1);
  CHECK(receive(second).source == kId && strcmp(memory.va, "hello") == 0);
  CHECK(rio_free(second, &memory) == 0);
  CHECK(rio_close(first) == 0);
  CHECK(rio_close(second) == 0);
}

/* Sleeps until a message arrives, as the header describes. */
static void interrupts(void) {
  const uint32_t rings = RIO_RING_BIT(RIO_RING_SHARED);
  rio_card* card = open_card("emu:loop,stepping=thread", (struct rio_options){.irq_rings = rings});
  struct rio_memory memory;
  CHECK(rio_alloc(card, 4096, 4096, &memory) == 0);
  for (int i = 0; i < 20; ++i) {
    const struct rio_rx_buffer buffer = {.iova = memory.iova};
    const struct rio_tx_message message = {
        .data = "wake up", .dest_id = kId, .length_bytes = 8, .flags = RIO_TX_INLINE};
    struct rio_rx_message got;
    CHECK(rio_rx_post(card, &buffer, 1) == 1);
    CHECK(rio_rx_burst(card, &got, 1) == 0);
    CHECK(rio_irq_arm(card, rings) == 0);
    CHECK(rio_rx_burst(card, &got, 1) == 0);
    CHECK(rio_tx_burst(card, &message, 1) == 1);
    struct pollfd wait = {.fd = rio_irq_fd(card), .events = POLLIN};
    CHECK(poll(&wait, 1, 10000) == 1);
    CHECK(rio_irq_ack(card) == 0);
    CHECK(poll(&wait, 1, 0) == 0);
    CHECK(rio_rx_burst(card, &got, 1) == 1 && got.status == RIO_OK);
    CHECK(reap(card).status == RIO_OK);
  }
  CHECK(rio_close(card) == 0);
}

/* One round, in which each of two members sends to the other one and awaits it. */
static struct rio_barrier_desc exchange_with(uint32_t peer) {
  struct rio_barrier_desc desc = {
      .control = RIO_BARRIER_CONTROL(RIO_BARRIER_RUN, 1, 0), .group = 5, .send = 1, .await = 1};
  for (uint32_t i = 0; i < RIO_BARRIER_PEERS; ++i) {
    desc.peers[i] = RIO_BARRIER_NO_PEER;
  }
  desc.peers[0] = peer;
  return desc;
}

/* Polls until a counter of the barrier engine has a value: the card shows them now and then. */
static int counts_to(rio_card* card, const char* wanted, uint32_t expected) {
  for (int polls = 0; polls < kPolls; ++polls) {
    const char* name = "";
    uint32_t value = 0;
    struct rio_barrier_done none;
    CHECK(rio_barrier_reap(card, &none, 1) == 0);
    for (uint32_t i = 0; rio_barrier_counter(card, i, &name, &value) == 0; ++i) {
      if (strcmp(name, wanted) == 0 && value == expected) {
        return 1;
      }
    }
  }
  return 0;
}

/* Reaps a barrier of each member. */
static void reap_barriers(rio_card* const members[2], struct rio_barrier_done done[2]) {
  int ended[2] = {0, 0};
  for (int i = 0; i < kPolls && (!ended[0] || !ended[1]); ++i) {
    for (int m = 0; m < 2; ++m) {
      ended[m] = ended[m] || rio_barrier_reap(members[m], &done[m], 1) == 1;
    }
  }
  CHECK(ended[0] && ended[1]);
}

static void barriers(void) {
  const struct rio_options with = {.barriers = 1, .barrier_entries = 8};
  rio_card* const first = open_card("emu:loop,qps=2", with);
  struct rio_options second_options = with;
  second_options.size_bytes = sizeof second_options;
  second_options.queue_pair = 1;
  rio_card* second = NULL;
  CHECK(rio_open_queue_pair(first, &second_options, &second) == 0);
  rio_card* const members[2] = {first, second};
  struct rio_info info;
  CHECK(rio_get_info(first, &info, sizeof info) == 0);
  CHECK(info.barrier_rounds == 20 && info.barrier_slots == 16 && info.barrier_early != 0);
  CHECK((info.rings & RIO_RING_BIT(RIO_RING_BARRIER)) != 0);
  CHECK(rio_free_count(first, RIO_RING_BARRIER) == 8);

  const struct rio_barrier_desc descs[2] = {exchange_with(kId + 1), exchange_with(kId)};
  struct rio_barrier_done done[2];
  for (int m = 0; m < 2; ++m) {
    const struct rio_barrier_request request = {.desc = &descs[m], .cookie = 40, .epoch = 1};
    CHECK(rio_barrier_reap(first, done, 1) == 0);
    CHECK(rio_barrier_post(members[m], &request, 1) == 1);
  }
  reap_barriers(members, done);
  for (int m = 0; m < 2; ++m) {
    CHECK(done[m].status == RIO_OK && done[m].cookie == 40 && done[m].epoch == 1);
    CHECK(done[m].slot == RIO_BARRIER_NO_SLOT);
    CHECK(rio_barrier_load(members[m], 15, &descs[m], 50) == 0);
  }
  CHECK(rio_barrier_load(first, 16, &descs[0], 50) == -EINVAL);
  CHECK(rio_barrier_go(first, 15, 2) == 1);
  CHECK(rio_barrier_go(first, 15, 3) == 0);
  CHECK(rio_last_reject(first, RIO_RING_BARRIER) == RIO_REJECT_OPERATION);
  CHECK(rio_barrier_load(first, 15, &descs[0], 50) == -EBUSY);
  CHECK(rio_outstanding(first, RIO_RING_BARRIER) == 1);
  CHECK(rio_barrier_go(second, 15, 2) == 1);
  reap_barriers(members, done);
  CHECK(done[0].status == RIO_OK && done[0].cookie == 50 && done[0].slot == 15);
  CHECK(counts_to(first, "sent", 2) && counts_to(second, "received", 2));

  CHECK(rio_barrier_go(first, 15, 3) == 1);
  struct rio_barrier_desc cancel = descs[1];
  cancel.control = RIO_BARRIER_CONTROL(RIO_BARRIER_CANCEL, 1, 0);
  const struct rio_barrier_request request = {.desc = &cancel, .cookie = 60, .epoch = 3};
  CHECK(rio_barrier_post(second, &request, 1) == 1);
  reap_barriers(members, done);
  CHECK(done[0].status == RIO_PEER_FAILED && done[0].round == 0 && done[0].peer == 0);
  CHECK(strcmp(rio_status_name(done[0].status), "peer failed") == 0);
  CHECK(counts_to(first, "cancelled", 1));
  CHECK(rio_close(second) == 0);
  CHECK(rio_close(first) == 0);

  rio_card* const without = open_card("emu:loop", (struct rio_options){0});
  CHECK(rio_barrier_post(without, &request, 1) == 0 && rio_barrier_go(without, 0, 1) == 0);
  CHECK(rio_barrier_reap(without, done, 1) == 0);
  CHECK(rio_barrier_load(without, 0, &descs[0], 0) == -ENOENT);
  CHECK(rio_close(without) == 0);
}

/* The end of a barrier wakes a member that sleeps. */
static void barrier_interrupts(void) {
  const uint32_t rings = RIO_RING_BIT(RIO_RING_BARRIER);
  struct rio_options options = {.barriers = 1, .irq_rings = rings};
  rio_card* const first = open_card("emu:loop,qps=2,stepping=thread", options);
  options.size_bytes = sizeof options;
  options.queue_pair = 1;
  rio_card* second = NULL;
  CHECK(rio_open_queue_pair(first, &options, &second) == 0);
  rio_card* const members[2] = {first, second};
  for (int m = 0; m < 2; ++m) {
    const struct rio_barrier_desc desc = exchange_with(m == 0 ? kId + 1 : kId);
    CHECK(rio_barrier_load(members[m], 0, &desc, 0) == 0);
  }
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    struct rio_barrier_done done;
    CHECK(rio_barrier_go(first, 0, epoch) == 1);
    CHECK(rio_irq_arm(first, rings) == 0);
    CHECK(rio_barrier_reap(first, &done, 1) == 0);
    CHECK(rio_barrier_go(second, 0, epoch) == 1);
    struct pollfd wait = {.fd = rio_irq_fd(first), .events = POLLIN};
    CHECK(poll(&wait, 1, 10000) == 1);
    CHECK(rio_irq_ack(first) == 0);
    CHECK(rio_barrier_reap(first, &done, 1) == 1 && done.status == RIO_OK && done.epoch == epoch);
    for (int i = 0; rio_barrier_reap(second, &done, 1) == 0; ++i) {
      CHECK(i < 10000);
      (void)poll(NULL, 0, 1); /* the card has a thread of its own */
    }
  }
  CHECK(rio_close(second) == 0);
  CHECK(rio_close(first) == 0);
}

/* A card tells its own program and, by its RapidIO port, another one how busy it is. */
static void rails(rio_card* card) {
  struct rio_rail_state state = {0};
  struct rio_memory memory;
  CHECK(rio_rail_read(card, &state) == -ENOENT && rio_rail_close(card) == -ENOENT);
  CHECK(rio_rail_open(card, 0) == -EINVAL);
  CHECK(rio_rail_open(card, 1) == 0);
  CHECK(rio_rail_open(card, 1) == -EBUSY);
  CHECK(rio_rail_read(card, &state) == 0);
  CHECK(state.link_up == 1 && state.reading == 0 && state.receiving == 0);
  CHECK(state.tx_bytes == 0 && state.rx_bytes == 0 && state.sequence != 0);
  CHECK(rio_rail_close(card) == 0);

  CHECK(rio_alloc(card, RIO_RAIL_BYTES, 64, &memory) == 0);
  struct rio_dma_request request = {.rio_addr = RIO_RAIL_ADDRESS,
                                    .iova = memory.iova,
                                    .dest_id = kId,
                                    .length_bytes = RIO_RAIL_BYTES,
                                    .op = RIO_NREAD};
  const uint32_t last = state.sequence;
  struct rio_entry_done done = dma(card, request);
  CHECK(rio_rail_decode(&done, memory.va, &state) == 0);
  CHECK(state.link_up == 1 && state.sequence >= last && state.rx_bytes == RIO_RAIL_BYTES);
  memset(memory.va, 0, RIO_RAIL_BYTES);
  CHECK(rio_rail_decode(&done, memory.va, &state) == -EPROTO);
  request.length_bytes = 32;
  done = dma(card, request);
  CHECK(rio_rail_decode(&done, memory.va, &state) == -ENOTSUP);
  CHECK(rio_free(card, &memory) == 0);
}

int main(void) {
  CHECK(rio_api_version() == RIO_API_VERSION);
  rio_card* card = open_card("emu:loop", (struct rio_options){0});
  struct rio_memory memory;
  CHECK(rio_alloc(card, 8192, 4096, &memory) == 0);
  messages(card, &memory);
  dedicated(card, &memory);
  doorbells(card);
  remote_memory(card);
  maintenance(card);
  information(card);
  rails(card);
  CHECK(rio_free(card, &memory) == 0);
  CHECK(rio_close(card) == 0);
  queue_pairs();
  barriers();
  barrier_interrupts();
  interrupts();
  puts("all checks passed");
  return 0;
}
