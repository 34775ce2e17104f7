// Steps that need no link: registers, rings; and the link itself.
#include <array>
#include <cstdio>
#include <cstring>

#include "pmd/dev/names.hpp"
#include "pmd/dev/reg_names.hpp"
#include "pmd/selftest/bench.hpp"

namespace rio::selftest {
namespace {

using pmd::RegWord;

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
std::string write_and_compare(Bench& bench, const std::vector<ScratchWord>& words,
                              ValueOf&& value_of) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (bench.card().reg_write(words[i].word.offset(), value_of(i) & words[i].bits) != 0) {
      return words[i].word.name() + " cannot be written";
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t read = 0;
    const uint32_t wrote = value_of(i) & words[i].bits;
    if (bench.card().reg_read(words[i].word.offset(), &read) != 0) {
      bench.gone = bench.card().gone();
      return words[i].word.name() + " cannot be read";
    }
    if (((read ^ wrote) & words[i].bits) != 0) {
      char text[160];
      std::snprintf(text, sizeof(text), "%s holds 0x%08x after 0x%08x was written",
                    words[i].word.name().c_str(), read, wrote);
      return text;
    }
  }
  return "";
}

/// Sizes and first indices that a ring is tried with.
struct RingTrial {
  uint32_t log2;
  uint32_t start_index;
};

/// Start and stop one ring.
std::string try_ring(Bench& bench, uint32_t qp, uint32_t ring, const RingTrial& trial) {
  constexpr auto kFirst = static_cast<uint32_t>(regs::Ring::kDedicated0);
  pmd::QueuePairConfig config;
  config.tx_log2 = config.shared_log2 = config.dedicated_log2 = config.doorbell_log2 =
      config.dma_log2 = config.maint_log2 = config.event_log2 = trial.log2;
  config.start_index = trial.start_index;
  config.rings = ring >= kFirst ? pmd::ring_bit(regs::Ring::kEvent) : 1u << ring;
  std::unique_ptr<pmd::QueuePair> pair;
  int rc = bench.card().open_queue_pair(qp, config, &pair);
  if (rc == 0 && ring >= kFirst) {
    pmd::DedicatedRxQueue* queue = nullptr;
    rc = pair->open_dedicated(ring - kFirst, 1, 0, &queue);
    rc = rc != 0 ? rc : pair->close_dedicated(ring - kFirst);
  }
  rc = rc != 0 ? rc : pair->stop();
  if (rc == 0) {
    return "";
  }
  bench.gone = rc == -ENODEV;
  return "queue pair " + std::to_string(qp) + ", ring " + pmd::ring_name(ring) + " of 2^" +
         std::to_string(trial.log2) + " entries: " + std::strerror(-rc);
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

}  // namespace

Verdict test_registers(Bench& bench) {
  const std::vector<ScratchWord> words = scratch_words(bench.card());
  std::vector<uint32_t> patterns = {0xFFFFFFFF, 0x55555555, 0xAAAAAAAA, 0};
  for (uint32_t bit = 0; !bench.config().quick && bit < 32; ++bit) {
    patterns.push_back(1u << bit);
  }
  uint64_t done = 0;
  std::string wrong;
  for (const uint32_t pattern : patterns) {
    wrong =
        wrong.empty() ? write_and_compare(bench, words, [=](size_t) { return pattern; }) : wrong;
    bench.tell("registers", done += words.size(), words.size() * (patterns.size() + 1));
  }
  // Another value in each: two words at one place show.
  const auto different = [&](size_t i) {
    return static_cast<uint32_t>((i + 1) * 0x9E3779B1u + bench.config().seed) & ~63u;
  };
  wrong = wrong.empty() ? write_and_compare(bench, words, different) : wrong;
  const std::string cleared = write_and_compare(bench, words, [](size_t) { return 0u; });
  wrong = wrong.empty() ? cleared : wrong;
  return wrong.empty() ? pass(done + words.size(), "writes read back", 4 * (done + words.size()))
                       : fail(wrong);
}

Verdict test_rings(Bench& bench) {
  const pmd::Caps& caps = bench.card().caps();
  const RingTrial trials[] = {{caps.ring_log2_min, 0}, {caps.ring_log2_max, 0xFFFFFFF0}};
  const uint32_t pairs = bench.config().quick ? 1 : caps.queue_pairs;
  uint64_t done = 0;
  for (uint32_t qp = 0; qp < pairs; ++qp) {
    if (!bench.card().blocks().has_qp(qp)) {
      continue;
    }
    uint32_t present = 0;
    if (bench.card().reg_read(regs::qp::rings(qp), &present) != 0) {
      bench.gone = bench.card().gone();
      return fail("queue pair " + std::to_string(qp) + " cannot be read");
    }
    for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
      if ((present >> ring & 1u) == 0 || !is_ring(bench.card(), qp, ring)) {
        continue;
      }
      for (const RingTrial& trial : trials) {
        if (std::string wrong = try_ring(bench, qp, ring, trial); !wrong.empty()) {
          return fail(wrong);
        }
        bench.tell("rings", ++done, 0);
      }
    }
  }
  return done != 0 ? pass(done, "starts and stops") : fail("the card has no ring");
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
    return fail("no link within " + std::to_string(bench.config().link_timeout_ms) +
                " ms; check cable, module and the other end");
  }
  if (link.lanes < link.lanes_max) {
    return fail("trained with " + lanes + "; check cable and module, then reset the port");
  }
  Verdict verdict = pass(1, "port");
  verdict.reason = lanes;
  return verdict;
}

Verdict test_prbs(Bench& bench) {
  // The driver passes over blocks that it does not know, so the chain is walked here once more.
  // BlockList has found that it ends.
  uint32_t at = 0;
  int rc = bench.card().reg_read(regs::id::next(), &at);
  for (uint32_t i = 0; rc == 0 && at != 0 && i < 3 + 8 * regs::kMaxQps; ++i) {
    uint32_t header = 0;
    uint32_t next = 0;
    rc = bench.card().reg_read(at, &header);
    rc = rc != 0 ? rc : bench.card().reg_read(at + 4, &next);
    if (rc == 0 &&
        regs::id::Block::type.get(header) == static_cast<uint32_t>(regs::BlockType::kPrbs)) {
      return skip("the card has a PRBS block, whose layout the register map does not have yet");
    }
    at = next;
  }
  bench.gone = bench.card().gone();
  return rc == 0 ? skip("not there: the card has no PRBS block")
                 : fail("the blocks cannot be read");
}

}  // namespace rio::selftest
