#include "tests/unit/fpga/model/same_world.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kPhase = 1u << 31;
constexpr uint32_t kUnmappedMbox = 63;
constexpr uint64_t kSliceUs = 1000;

uint8_t pattern_at(uint32_t node, size_t at) {
  return static_cast<uint8_t>((at * 2654435761u + node * 97) >> 13);
}

}  // namespace

World::World(const WorldConfig& config, bool mixed, uint64_t seed)
    : config_(config), mixed_(mixed), hooks_(seed) {
  make_nodes();
  for (uint32_t node = 0; node < nodes(); ++node) {
    for (uint32_t q = 0; q < pairs(); ++q) {
      HostPair& host = hosts_[node].emplace_back();
      host.slots = nodes_[node]->map(size_t{kSlotBytes} << kSharedLog2);
      for (Memory& slots : host.dedicated_slots) {
        slots = nodes_[node]->map(size_t{kSlotBytes} << kTxLog2);
      }
    }
    Memory& bytes = hosts_[node][0].tx_bytes;
    bytes = nodes_[node]->map(kTxBytes);
    for (size_t i = 0; i < bytes.len_bytes; ++i) {
      bytes.va[i] = pattern_at(node, i);
    }
    start(node);
  }
  pass_us(1);
  settle();
}

void World::make_nodes() {
  const Wiring wiring = config_.wiring;
  const uint32_t count = wiring == Wiring::kLoop ? 1 : wiring == Wiring::kRings ? 3 : 2;
  std::vector<std::vector<OneWay*>> way(count, std::vector<OneWay*>(count));
  for (uint32_t from = 0; from < count; ++from) {
    for (uint32_t to = 0; to < count; ++to) {
      way[from][to] = from == to ? nullptr : &ways_.emplace_back();
    }
  }
  const LongMessages longs = wiring == Wiring::kPulls         ? LongMessages::kPulled
                             : wiring == Wiring::kBytesBehind ? LongMessages::kBytesBehind
                             : wiring == Wiring::kMapped      ? LongMessages::kMapped
                                                              : LongMessages::kInRing;
  hosts_.resize(count);
  links_.resize(count, true);
  for (uint32_t node = 0; node < count; ++node) {
    std::unique_ptr<model::Wire> wire;
    if (wiring == Wiring::kLoop) {
      wire = model::make_loop_wire();
    } else if (wiring == Wiring::kCable) {
      wire = cable_->plug(static_cast<int>(node));
    } else {
      std::vector<OneWay*> in;
      for (uint32_t from = 0; from < count; ++from) {
        in.push_back(way[from][node]);
      }
      wire = std::make_unique<RingsWire>(way[node], in, longs);
    }
    nodes_.push_back(std::make_unique<SameNode>(config_.card, std::move(wire), &clock_));
  }
}

bool World::target(uint32_t dest_id, uint32_t mbox, Spot* out) const {
  const uint32_t node = (dest_id >> 8) - 1;
  const uint32_t pair = dest_id & 0xFF;
  if (node >= nodes() || pair >= pairs() || mbox == kUnmappedMbox) {
    return false;
  }
  // The upper half of the first pair's mailboxes leads to the last pair.
  *out = {node, pair == 0 && mbox >= 32 ? pairs() - 1 : pair};
  return true;
}

void World::start(uint32_t node) {
  namespace id = regs::id;
  namespace map = regs::rx_map;
  SameNode& card = *nodes_[node];
  card.write32(id::response_timeout_us(), kResponseTimeoutUs);
  card.write32(id::receive_timeout_us(), 2 * kResponseTimeoutUs);
  card.write32(id::retry_delay_us(), 100);
  card.write32(id::retry_limit(), config_.retry_limit);
  const auto entry = [&](uint32_t i, uint32_t dest_id, uint64_t mboxes, uint32_t pair) {
    card.write32(map::dest_id(i), dest_id);
    card.write32(map::mbox_lo(i), static_cast<uint32_t>(mboxes));
    card.write32(map::mbox_hi(i), static_cast<uint32_t>(mboxes >> 32));
    card.write32(map::entry(i), map::Entry::valid.put(1) | map::Entry::doorbells.put(1) |
                                    map::Entry::requests.put(1) | map::Entry::qp.put(pair));
  };
  constexpr uint64_t kUpper = ~0ull << 32 & ~(1ull << kUnmappedMbox);
  constexpr uint64_t kLower = ~0u;
  entry(0, this->dest_id({node, 0}), kLower, 0);
  entry(1, this->dest_id({node, 0}), kUpper, pairs() - 1);
  for (uint32_t q = 0; q < pairs(); ++q) {
    card.write32(id::qp_dest_id(q), this->dest_id({node, q}));
    if (q != 0) {
      entry(1 + q, this->dest_id({node, q}), kLower | kUpper, q);
    }
  }
  card.write32(map::apply(), card.read32(map::applied()) + 1);
  card.write32(id::gen_req(), card.read32(id::gen_ack()) + 1);
  card.run();
  ASSERT_EQ(card.read32(id::gen_ack()), card.read32(id::gen_req()));
  for (uint32_t q = 0; q < pairs(); ++q) {
    start_rings({node, q});
  }
}

RingConfig World::ring(Spot spot, uint32_t number, uint32_t log2) const {
  RingConfig config;
  config.qp = spot.pair;
  config.ring = number;
  config.log2 = log2;
  config.start = config_.start;
  return config;
}

void World::start_rings(Spot spot) {
  HostPair& pair = host(spot);
  const auto begin = [&](std::unique_ptr<TestRing>& ring, regs::Ring number, uint32_t log2) {
    const RingConfig config = this->ring(spot, static_cast<uint32_t>(number), log2);
    if (ring == nullptr) {
      ring = std::make_unique<TestRing>(*nodes_[spot.node], config);
    }
    ring->start();
  };
  pair.posted = 0;
  begin(pair.tx, regs::Ring::kTx, kTxLog2);
  begin(pair.shared, regs::Ring::kShared, kSharedLog2);
  begin(pair.bells, regs::Ring::kDoorbell, kBellsLog2);
  begin(pair.events, regs::Ring::kEvent, kSharedLog2);
  for (uint32_t which = 0; spot.pair == 0 && which < kDedicated; ++which) {
    start_dedicated(spot, which);
  }
}

void World::start_dedicated(Spot spot, uint32_t which) {
  std::unique_ptr<TestRing>& ring = host(spot).dedicated[which];
  if (ring == nullptr) {
    const auto number = static_cast<uint32_t>(regs::Ring::kDedicated0) + which;
    RingConfig config = this->ring(spot, number, kTxLog2);
    config.source = this->dest_id(dedicated_source(spot.node));
    config.mbox = 2 + which;
    ring = std::make_unique<TestRing>(*nodes_[spot.node], config);
  }
  ring->start();
}

void World::post_shared(Spot spot, uint32_t count) {
  HostPair& pair = host(spot);
  for (; count > 0; --count) {
    const uint32_t at = (pair.shared->tail & ((1u << kSharedLog2) - 1)) * kSlotBytes;
    std::memset(pair.slots.va + at, kRed, kSlotBytes);
    pair.shared->put(regs::SharedDesc{pair.slots.iova + at});
  }
  pair.shared->post();
}

uint32_t World::shared_left(Spot spot) const {
  return host(spot).shared->tail - host(spot).shared->cidx;
}

void World::post_dedicated(Spot spot, uint32_t which, uint32_t size, uint32_t cookie) {
  HostPair& pair = host(spot);
  TestRing& ring = *pair.dedicated[which];
  const uint32_t at = (ring.tail & ((1u << kTxLog2) - 1)) * kSlotBytes;
  std::memset(pair.dedicated_slots[which].va + at, kRed, kSlotBytes);
  ring.put(regs::DedicatedDesc{pair.dedicated_slots[which].iova + at, size, cookie});
  ring.post();
}

void World::restart_dedicated(Spot spot, uint32_t which) {
  host(spot).dedicated[which]->stop();
  start_dedicated(spot, which);
}

void World::stop_tx(Spot spot) {
  host(spot).tx->request_stop();
  settle();
  pass_us(1);
  settle();
  ASSERT_EQ(host(spot).tx->status().state, regs::RingState::kStopped);
}

void World::give_bells(Spot spot) {
  take_bells(host(spot));
  host(spot).bells->give_back();
}

uint32_t World::post(const Send& send) {
  TestRing& ring = *host(send.from).tx;
  const uint32_t index = ring.tail;
  ++host(send.from).posted;
  ring.put(send.desc);
  if (send.wide) {
    ring.put(send.second);
  }
  return index;
}

void World::set_link(uint32_t node, bool up) {
  links_[node] = up;
  nodes_[node]->set_link(up);
}

void World::pass_us(uint64_t us) {
  // In slices: a card that was not stepped for long restarts the time-outs of its last messages.
  for (uint64_t passed = 0; passed < us; passed += kSliceUs) {
    clock_.advance_ns(std::min(us - passed, kSliceUs) * 1000);
    for (uint32_t node = 0; node < nodes(); ++node) {
      nodes_[node]->set_link(links_[node]);  // makes the next step a full one
    }
    step_all();
  }
}

void World::step_all() {
  for (auto& node : nodes_) {
    switch (mixed_ ? hooks_.below(5) : 0) {
      case 1:
        node->card().step_to_receive();
        break;
      case 2:
        node->card().step_to_send();
        break;
      case 3:
        node->card().step_to_reap();
        break;
      default:
        node->card().step();
    }
  }
}

uint64_t World::activity() {
  uint64_t sum = 0;
  for (auto& node : nodes_) {
    sum += node->card().activity().done;
  }
  return sum;
}

void World::settle() {
  constexpr uint32_t kQuiet = 48;  // more than the steps between two polls for answers
  uint64_t before = activity();
  for (uint32_t quiet = 0; quiet < kQuiet; ++quiet) {
    step_all();
    const uint64_t now = activity();
    if (now != before) {
      before = now;
      quiet = 0;
    }
  }
}

std::string World::slot(const Memory& slots, uint32_t index, uint32_t log2) {
  const auto* const at = slots.va + size_t{index & ((1u << log2) - 1)} * kSlotBytes;
  return {reinterpret_cast<const char*>(at), kSlotBytes};
}

void World::take_sent(HostPair& pair) {
  for (regs::TxCpl cpl; pair.tx->take(&cpl); --pair.posted) {
    pair.sent.push_back(
        {cpl.index, cpl.cookie, code_of(cpl.status), retries_of(cpl.status), cpl.time});
  }
}

void World::take_bells(HostPair& pair) {
  for (regs::DoorbellCpl cpl; pair.bells->take(&cpl);) {
    pair.rung.push_back({cpl.source, cpl.dest_id, cpl.status & ~kPhase});
  }
}

uint32_t World::unfinished() {
  uint32_t sum = 0;
  for (std::vector<HostPair>& node : hosts_) {
    for (HostPair& pair : node) {
      take_sent(pair);
      sum += pair.posted;
    }
  }
  return sum;
}

void World::take_shared(HostPair& pair, Results* out) {
  std::vector<regs::SharedCpl> all;
  for (regs::SharedCpl cpl; pair.shared->take(&cpl);) {
    all.push_back(cpl);
  }
  // Completions come in any order. Arrival numbers, or the indices of entries, give the order of
  // messages.
  std::sort(all.begin(), all.end(), [](const regs::SharedCpl& a, const regs::SharedCpl& b) {
    return static_cast<int32_t>(a.arrival - b.arrival) < 0;
  });
  for (const regs::SharedCpl& cpl : all) {
    const regs::Status status = code_of(cpl.status & ~kPhase);
    out->received.push_back(
        {.ring = static_cast<uint32_t>(regs::Ring::kShared),
         .source = cpl.source,
         .dest_id = cpl.dest_id,
         .mbox = cpl.place & 63u,
         .length = cpl.length,
         .segments = cpl.segments,
         .cookie = cpl.reserved,
         .status = status,
         .bytes = status == regs::Status::kOk ? slot(pair.slots, cpl.index, kSharedLog2) : ""});
    out->indices.push_back(cpl.index);
    out->arrivals.push_back(cpl.arrival);
  }
}

void World::take_dedicated(HostPair& pair, uint32_t which, Results* out) {
  std::vector<regs::EntryCpl> all;
  for (regs::EntryCpl cpl; pair.dedicated[which]->take(&cpl);) {
    all.push_back(cpl);
  }
  std::sort(all.begin(), all.end(), [](const regs::EntryCpl& a, const regs::EntryCpl& b) {
    return static_cast<int32_t>(a.index - b.index) < 0;
  });
  for (const regs::EntryCpl& cpl : all) {
    const regs::Status status = code_of(cpl.status & ~kPhase);
    RxResult result{};
    result.ring = static_cast<uint32_t>(regs::Ring::kDedicated0) + which;
    result.length = cpl.bytes;
    result.cookie = cpl.cookie;
    result.status = status;
    if (status == regs::Status::kOk) {
      result.bytes = slot(pair.dedicated_slots[which], cpl.index, kTxLog2);
    }
    out->received.push_back(std::move(result));
    out->indices.push_back(cpl.index);
  }
}

Results World::take(Spot spot) {
  HostPair& pair = host(spot);
  Results out;
  take_sent(pair);
  out.sent.swap(pair.sent);
  take_shared(pair, &out);
  for (uint32_t which = 0; spot.pair == 0 && which < kDedicated; ++which) {
    take_dedicated(pair, which, &out);
  }
  take_bells(pair);
  out.bells.swap(pair.rung);
  for (regs::EventCpl cpl; pair.events->take(&cpl);) {
    out.events.push_back(
        {cpl.type, cpl.source, cpl.info, cpl.data0, cpl.data1, cpl.data2, cpl.data3});
  }
  pair.events->give_back();
  return out;
}

bool World::tx_bytes_whole(uint32_t node) const {
  const Memory& bytes = hosts_[node][0].tx_bytes;
  for (size_t i = 0; i < bytes.len_bytes; ++i) {
    if (bytes.va[i] != pattern_at(node, i)) {
      return false;
    }
  }
  return true;
}

}  // namespace rio::test
