// Steps with messages, doorbells and remote memory.
#include <algorithm>

#include "pmd/selftest/bench.hpp"

namespace rio::selftest {
namespace {

constexpr uint32_t kProbes = 8;  // a fault may hit some of them
constexpr uint16_t kProbeInfo = 0x5AA5;

/// Runs a part over a link that is looped back, `rounds` times, each with rings of its own.
/// @param unit of what it tries.
Verdict run_part(Bench& bench, const char* step, const char* unit,
                 const std::function<std::string(Exchange&, Tally*)>& part,
                 const pmd::QueuePairConfig& queues = {}, uint32_t rounds = 1) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  Tally tally{.tell = [&](uint64_t done, uint64_t total) { bench.tell(step, done, total); }};
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto work = [&](auto&, Exchange& exchange) { return part(exchange, &tally); };
    if (std::string wrong = bench.loop(work, queues); !wrong.empty()) {
      return fail(wrong);
    }
  }
  return pass(tally.done, unit, tally.bytes);
}

Verdict run_messages(Bench& bench, const char* step, const std::vector<MessageTrial>& trials) {
  return run_part(bench, step, "messages", [&](Exchange& exchange, Tally* tally) {
    return try_messages(exchange, trials, tally);
  });
}

/// Why steps with remote memory cannot run; empty if they can.
std::string no_memory(Bench& bench) {
  if (!bench.no_loop.empty()) {
    return bench.no_loop;
  }
  if (!bench.card().caps().dma) {
    return "the card has no DMA queue";
  }
  return bench.card().blocks().has_window(0) ? "" : "the card has no inbound windows";
}

}  // namespace

Verdict test_loop(Bench& bench) {
  std::string wrong = bench.wait_link() ? "" : "the link is down";
  bool heard = false;
  for (uint32_t i = 0; i < kProbes && wrong.empty() && !heard; ++i) {
    const std::string what =
        bench.loop([](auto&, Exchange& exchange) { return exchange.doorbell(kProbeInfo); });
    heard = what.empty();
    if (bench.gone) {
      return fail(what);
    }
    if (!heard && i + 1 == kProbes) {
      wrong = "a doorbell to its own destID did not come back: " + what;
    }
    if (!heard) {
      (void)bench.reset();
    }
  }
  bench.no_loop = wrong;
  if (heard) {
    return pass(1, "doorbell");
  }
  return bench.config().must_loop ? fail(wrong + "; plug a loop-back, or set the port to loop back")
                                  : skip("the link is not looped back to this card: " + wrong);
}

Verdict test_doorbells(Bench& bench) {
  return run_part(bench, "doorbells", "doorbells", [&](Exchange& exchange, Tally* tally) {
    return try_doorbells(exchange, bench.config().quick, tally);
  });
}

Verdict test_inline(Bench& bench) {
  const std::vector<MessageTrial> trials = inline_trials(bench.card().caps(), bench.config().quick);
  if (bench.no_loop.empty() && trials.empty()) {
    return skip("the card takes no inline bytes");
  }
  return run_messages(bench, "inline", trials);
}

Verdict test_messages(Bench& bench) {
  return run_messages(bench, "messages", length_trials(bench.config().quick));
}

Verdict test_segments(Bench& bench) {
  return run_messages(bench, "segments", segment_trials());
}

Verdict test_bursts(Bench& bench) {
  pmd::QueuePairConfig queues;
  queues.tx_log2 = queues.shared_log2 = End::kBurstLog2;
  queues.start_index = UINT32_MAX - End::kBurstEntries;  // indices wrap in the second burst
  return run_part(
      bench, "bursts", "messages",
      [&](Exchange& exchange, Tally* tally) {
        return try_bursts(exchange, bench.config().quick ? 8 : 256, tally);
      },
      queues);
}

Verdict test_dedicated(Bench& bench) {
  // Sizes that need no alignment would be thousands for each queue.
  const uint32_t stride = bench.config().quick ? 1024 : 64;
  uint32_t queue = 0;
  return run_part(
      bench, "dedicated", "entries",
      [&](Exchange& exchange, Tally* tally) {
        return try_dedicated(exchange, queue++, stride, tally);
      },
      {}, regs::kDedicatedQueues);
}

Verdict test_memory(Bench& bench) {
  if (const std::string why = no_memory(bench); !why.empty()) {
    return skip(why);
  }
  return run_part(bench, "memory", "reads and writes", [&](Exchange& exchange, Tally* tally) {
    return try_memory(exchange, bench.config().quick, tally);
  });
}

Verdict test_atomics(Bench& bench) {
  if (const std::string why = no_memory(bench); !why.empty()) {
    return skip(why);
  }
  if (!bench.card().caps().atomics) {
    return skip("the card has no atomics");
  }
  return run_part(bench, "atomics", "atomic operations", try_atomics);
}

Verdict test_peer(Bench& bench) {
  if (!bench.config().has_peer) {
    return skip("no peer named: --peer DESTID");
  }
  uint64_t done = 0;
  const auto work = [&](pmd::QueuePair&, Exchange& exchange) {
    std::string wrong;
    pmd::TxMessage message{.iova = bench.memory().iova,
                           .cookie = 0,
                           .dest_id = bench.config().peer,
                           .length_bytes = 0,
                           .mbox = 0,
                           .flags = 0};
    for (const uint32_t len : some_lengths()) {
      message.length_bytes = static_cast<uint16_t>(len);
      message.mbox = static_cast<uint8_t>(len % regs::kMultiMailboxes);
      wrong = wrong.empty() ? exchange.send(message, "message of " + std::to_string(len) + " bytes")
                            : wrong;
      bench.tell("peer", ++done, 0);
    }
    message.length_bytes = 0;
    message.mbox = 0;
    message.flags = pmd::TxFlags::kDoorbell;
    for (uint32_t bit = 0; wrong.empty() && bit < 16; ++bit, ++done) {
      message.info = uint64_t{1} << bit;
      wrong = exchange.send(message, "doorbell");
    }
    return wrong;
  };
  pmd::QueuePairConfig queues;
  queues.rings = pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kEvent);
  if (std::string wrong = bench.loop(work, queues); !wrong.empty()) {
    return fail(wrong + "; does the peer run a program that receives?");
  }
  Verdict verdict = pass(done, "messages and doorbells");
  verdict.reason = "all delivered; their bytes are for the peer to look at";
  return verdict;
}

}  // namespace rio::selftest
