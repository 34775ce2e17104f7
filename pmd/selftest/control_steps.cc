// Steps around the messages: registers, rings, the link, maintenance, interrupts.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/formatted.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/reg_names.hpp"
#include "pmd/selftest/bench.hpp"

namespace rio::selftest {
namespace {

using pmd::RegWord;

constexpr uint32_t kMaintTimeoutMs = 5000;
constexpr uint16_t kDoorbellInfo = 8;

/// A word that the card reads only when another one tells it to, so that anything may be in it
/// while all rings are stopped and all windows closed.
struct Scratch {
  const char* block;
  const char* name;
  uint32_t bits = 0xFFFFFFFF;  // that must be kept
};

constexpr std::array kScratch = {
    Scratch{"rx_map", "dest_id"},     Scratch{"rx_map", "mbox_lo"},
    Scratch{"rx_map", "mbox_hi"},     Scratch{"qp", "ring_base_lo", ~63u},
    Scratch{"qp", "ring_base_hi"},    Scratch{"qp", "ring_cbase_lo", ~63u},
    Scratch{"qp", "ring_cbase_hi"},   Scratch{"qp", "ring_start"},
    Scratch{"qp", "ring_source"},     Scratch{"window", "rio_lo"},
    Scratch{"window", "rio_hi"},      Scratch{"window", "size_lo"},
    Scratch{"window", "size_hi"},     Scratch{"window", "bus_lo"},
    Scratch{"window", "bus_hi"},      Scratch{"window", "source"},
    Scratch{"window", "source_mask"},
};

struct ScratchWord {
  RegWord word;
  uint32_t bits;
};

std::vector<ScratchWord> scratch_words(const pmd::Card& card) {
  std::vector<ScratchWord> out;
  for (const RegWord& word : pmd::words_of(card, "")) {
    for (const Scratch& scratch : kScratch) {
      if (std::strcmp(word.reg->block, scratch.block) == 0 &&
          std::strcmp(word.reg->name, scratch.name) == 0) {
        out.push_back({word, scratch.bits});
      }
    }
  }
  return out;
}

/// Write a value into each word, then read them all. @param value_of by the word's place.
template <class ValueOf>
void write_and_compare(pmd::Card& card, const std::vector<ScratchWord>& words, ValueOf&& value_of) {
  for (size_t i = 0; i < words.size(); ++i) {
    check(card.reg_write(words[i].word.offset(), value_of(i) & words[i].bits),
          words[i].word.name() + " cannot be written");
  }
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t read = 0;
    const uint32_t wrote = value_of(i) & words[i].bits;
    check(card.reg_read(words[i].word.offset(), &read), words[i].word.name() + " cannot be read");
    if (((read ^ wrote) & words[i].bits) != 0) {
      throw Fault(base::formatted("%s holds 0x%08x after 0x%08x was written",
                                  words[i].word.name().c_str(), read, wrote));
    }
  }
}

/// Sizes and first indices that a ring is tried with.
struct RingTrial {
  uint32_t log2;
  uint32_t start_index;
};

void try_ring(pmd::Card& card, uint32_t qp, uint32_t ring, const RingTrial& trial) {
  constexpr auto kFirst = static_cast<uint32_t>(regs::Ring::kDedicated0);
  pmd::QueuePairConfig config;
  config.tx_log2 = config.shared_log2 = config.dedicated_log2 = config.doorbell_log2 =
      config.dma_log2 = config.maint_log2 = config.event_log2 = trial.log2;
  config.start_index = trial.start_index;
  config.rings = ring >= kFirst ? pmd::ring_bit(regs::Ring::kEvent) : 1u << ring;
  std::unique_ptr<pmd::QueuePair> pair;
  int rc = card.open_queue_pair(qp, config, &pair);
  if (rc == 0 && ring >= kFirst) {
    pmd::DedicatedRxQueue* queue = nullptr;
    rc = pair->open_dedicated(ring - kFirst, 1, 0, &queue);
    rc = rc != 0 ? rc : pair->close_dedicated(ring - kFirst);
  }
  check(rc != 0 ? rc : pair->stop(), "queue pair " + std::to_string(qp) + ", ring " +
                                         pmd::ring_name(ring) + " of 2^" +
                                         std::to_string(trial.log2) + " entries");
}

/// Whether the driver has something to start there.
bool is_ring(const pmd::Card& card, uint32_t qp, uint32_t ring) {
  switch (static_cast<regs::Ring>(ring)) {
    case regs::Ring::kBarrier:
    case regs::Ring::kReserved7:
      return false;
    case regs::Ring::kDma:
      return card.caps().dma;
    case regs::Ring::kMaint:
      return card.caps().maint && qp == 0;
    default:
      return true;
  }
}

void wait_irq(Bench& bench, int fd, const std::string& what) {
  constexpr int kSliceMs = 50;
  for (uint32_t waited = 0; waited < bench.config().patience_ms; waited += kSliceMs) {
    pollfd poll_fd{fd, POLLIN, 0};
    uint64_t raised = 0;
    if (poll(&poll_fd, 1, kSliceMs) == 1 && read(fd, &raised, sizeof(raised)) > 0) {
      return;
    }
    if (bench.is_gone()) {
      throw Fault(kGone, -ENODEV);
    }
  }
  throw Fault(what + ": no interrupt within " + std::to_string(bench.config().patience_ms) + " ms");
}

/// The transmit and the doorbell ring of a doorbell, both by one vector, one after the other.
void run_vector(Bench& bench, uint32_t vector) {
  const int fd = bench.bus().irq_fd(vector);
  check(fd < 0 ? fd : 0, "vector " + std::to_string(vector));
  for (const regs::Ring ring : {regs::Ring::kTx, regs::Ring::kDoorbell}) {
    const std::string what = "vector " + std::to_string(vector) + ", ring " +
                             pmd::ring_name(static_cast<uint32_t>(ring));
    bench.reset();
    uint64_t old = 0;
    (void)!read(fd, &old, sizeof(old));  // what came before is not meant
    pmd::QueuePairConfig queues;
    queues.irq_vectors[static_cast<uint32_t>(ring)] = static_cast<int>(vector);
    const auto work = [&](Exchange& exchange) {
      pmd::QueuePair& pair = *exchange.from().pair;
      ring == regs::Ring::kTx ? pair.tx().arm() : pair.doorbells().arm();
      exchange.doorbell(kDoorbellInfo);
      wait_irq(bench, fd, what);
    };
    bench.loop(work, queues);
    bench.tally.add(1);
  }
}

}  // namespace

Verdict test_registers(Bench& bench) {
  const std::vector<ScratchWord> words = scratch_words(bench.card());
  std::vector<uint32_t> patterns = {0xFFFFFFFF, 0x55555555, 0xAAAAAAAA, 0};
  for (uint32_t bit = 0; !bench.config().quick && bit < 32; ++bit) {
    patterns.push_back(1u << bit);
  }
  const auto write = [&](const auto& value) {
    write_and_compare(bench.card(), words, value);
    bench.tally.add(words.size(), 4 * words.size(), words.size() * (patterns.size() + 1));
  };
  for (const uint32_t pattern : patterns) {
    write([=](size_t) { return pattern; });
  }
  // Another value in each: two words at one place show.
  write([&](size_t i) {
    return static_cast<uint32_t>((i + 1) * 0x9E3779B1u + bench.config().seed) & ~63u;
  });
  write_and_compare(bench.card(), words, [](size_t) { return 0u; });
  return {.unit = "writes read back"};
}

Verdict test_rings(Bench& bench) {
  const pmd::Caps& caps = bench.card().caps();
  const RingTrial trials[] = {{caps.ring_log2_min, 0}, {caps.ring_log2_max, 0xFFFFFFF0}};
  const uint32_t pairs = bench.config().quick ? 1 : caps.queue_pairs;
  for (uint32_t qp = 0; qp < pairs; ++qp) {
    if (!bench.card().blocks().has_qp(qp)) {
      continue;
    }
    uint32_t present = 0;
    check(bench.card().reg_read(regs::qp::rings(qp), &present),
          "queue pair " + std::to_string(qp) + " cannot be read");
    for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
      if ((present >> ring & 1u) == 0 || !is_ring(bench.card(), qp, ring)) {
        continue;
      }
      for (const RingTrial& trial : trials) {
        try_ring(bench.card(), qp, ring, trial);
        bench.tally.add(1);
      }
    }
  }
  if (bench.tally.done == 0) {
    throw Fault("the card has no ring");
  }
  return {.unit = "starts and stops"};
}

Verdict test_link(Bench& bench) {
  if (!bench.card().blocks().has_port()) {
    return skip("the card has no port block");
  }
  const bool up = bench.wait_link();
  const pmd::LinkState link = bench.card().link();
  const std::string lanes = std::to_string(link.lanes) + " of " + std::to_string(link.lanes_max) +
                            " lanes at " + std::to_string(link.lane_mbaud) + " Mbaud";
  if (!up) {
    throw Fault("no link within " + std::to_string(bench.config().link_timeout_ms) +
                " ms; check cable, module and the other end");
  }
  if (link.lanes < link.lanes_max) {
    throw Fault("trained with " + lanes + "; check cable and module, then reset the port");
  }
  bench.tally.add(1);
  return {.reason = lanes, .unit = "port"};
}

Verdict test_prbs(Bench& bench) {
  // The driver passes over blocks that it does not know, so the chain is walked here once more.
  // BlockList has found that it ends.
  const auto read = [&](uint32_t at) {
    uint32_t word = 0;
    check(bench.card().reg_read(at, &word), "the blocks cannot be read");
    return word;
  };
  uint32_t at = read(regs::id::next());
  for (uint32_t i = 0; at != 0 && i < 3 + 8 * regs::kMaxQps; ++i, at = read(at + 4)) {
    if (regs::id::Block::type.get(read(at)) == static_cast<uint32_t>(regs::BlockType::kPrbs)) {
      return skip("the card has a PRBS block, whose layout the register map does not have yet");
    }
  }
  return skip("not there: the card has no PRBS block");
}

Verdict test_maintenance(Bench& bench) {
  if (!bench.card().caps().maint) {
    return skip("the card has no maintenance queue");
  }
  const auto work = [&](Exchange& exchange) {
    constexpr uint32_t kIdentityCar = 0x00;
    constexpr uint8_t kAnyHops = 0xFF;
    pmd::MaintQueue& maint = exchange.from().pair->maint();
    uint32_t local[8] = {};
    check(maint.read_local(kIdentityCar, local, kMaintTimeoutMs), "CARs of the card");
    if (local[0] == 0 || local[0] == regs::kAllOnes) {
      throw Fault("the device identity CAR holds nothing");
    }
    bench.tally.add(1);
    if (!bench.no_loop.empty()) {
      return;
    }
    uint32_t remote[8] = {};
    check(maint.read(bench.config().dest_id, kAnyHops, kIdentityCar, remote, kMaintTimeoutMs),
          "CARs of the card over the link");
    bench.tally.add(1);
    if (std::memcmp(local, remote, sizeof(local)) != 0) {
      throw Fault("the CARs read over the link are other ones than those of the card");
    }
  };
  bench.loop(work, {}, bench.no_loop.empty());
  return {.unit = "reads of 8 CARs"};
}

Verdict test_interrupts(Bench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  const uint32_t vectors = bench.card().caps().vectors;
  if (vectors == 0) {
    return skip("the card has no interrupts");
  }
  if (bench.bus().poll_hook(0).fn != nullptr) {
    return skip("this card works only while it is polled; open it with stepping=thread");
  }
  if (bench.bus().irq_fd(0) == -ENOTSUP) {
    return skip("no interrupts on this bus; bind the card to vfio-pci");
  }
  for (uint32_t vector = 0; vector < (bench.config().quick ? 1 : vectors); ++vector) {
    run_vector(bench, vector);
  }
  return {.unit = "interrupts"};
}

}  // namespace rio::selftest
