#include "tests/bench/emulated_pair.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rio::bench {
namespace {

void must(int error, const char* what) {
  if (error != 0) {
    give_up(what, error);
  }
}

void open(const std::shared_ptr<pmd::EmuMemory>& memory, const name::Model& model, bool barriers,
          uint32_t dest_id, Port* port) {
  must(pmd::EmuBus::create({.wire = name::Cable{"bench"}, .model = model}, memory, &port->bus),
       "emulated card");
  pmd::CardConfig config;
  config.dest_ids = {dest_id};
  must(pmd::Card::open(*port->bus, config, &port->card), "Card::open");
  must(pmd::mem::BufferPool::create(*port->bus, EmulatedPair::kBuffers,
                                    port->card->caps().shared_addr_align, &port->pool),
       "BufferPool::create");
  must(port->card->open_queue_pair(0,
                                   {.tx_log2 = EmulatedPair::kRingLog2,
                                    .shared_log2 = EmulatedPair::kRingLog2,
                                    .barriers = barriers,
                                    .push = model.push_slots_log2 != 0},
                                   &port->pair),
       "Card::open_queue_pair");
  port->dest_id = dest_id;
  std::memset(port->pool->memory().va, 0x5A, port->pool->memory().len_bytes);
}

constexpr uint32_t kStepsMax = 100000;  // a card checks its link some 400 times in these steps

bool link_up(const Port& port) {
  return port.card->link().up;
}

void fill(Port* port) {
  uint32_t indices[EmulatedPair::kPosted];
  pmd::RxBuffer buffers[EmulatedPair::kPosted];
  const uint32_t n = port->pool->get(indices, EmulatedPair::kPosted);
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t iova = port->pool->iova(indices[i]);
    buffers[i] = {.iova = iova, .cookie = iova};
  }
  if (port->shared().post(buffers, static_cast<uint16_t>(n)) != EmulatedPair::kPosted) {
    give_up("filling the shared queue", 0);
  }
}

}  // namespace

void give_up(const char* what, int error) {
  std::fprintf(stderr, "error: %s: %s\n", what,
               error == 0 ? "not as expected" : std::strerror(-error));
  std::exit(1);
}

EmulatedPair::EmulatedPair(const name::Model& model, bool barriers) : memory_(pmd::own_memory()) {
  open(memory_, model, barriers, 1, &ports_[0]);
  open(memory_, model, barriers, 2, &ports_[1]);
  for (size_t i = 0; i < 2; ++i) {
    ports_[i].peer_id = ports_[1 - i].dest_id;
    fill(&ports_[i]);
  }
  // A card checks its link now and then, and the first one existed before the other.
  for (uint32_t i = 0; i < kStepsMax && !(link_up(ports_[0]) && link_up(ports_[1])); ++i) {
    step();
  }
  if (!link_up(ports_[0]) || !link_up(ports_[1])) {
    give_up("link", 0);
  }
}

uint32_t EmulatedPair::sink(size_t i) {
  pmd::RxMessage messages[kBurst];
  pmd::RxBuffer buffers[kBurst];
  const uint16_t n = ports_[i].shared().burst(messages, kBurst);
  for (uint32_t k = 0; k < n; ++k) {
    buffers[k] = {.iova = messages[k].cookie, .cookie = messages[k].cookie};
  }
  if (n != 0 && ports_[i].shared().post(buffers, n) != n) {
    give_up("giving buffers back", 0);
  }
  return n;
}

}  // namespace rio::bench
