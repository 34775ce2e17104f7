// Steps with messages, doorbells and remote memory; the list of all steps, and their run.
#include "pmd/selftest/selftest.hpp"

#include <array>
#include <chrono>

#include "pmd/selftest/bench.hpp"

namespace rio::selftest {
namespace {

constexpr uint32_t kProbes = 8;  // a fault may hit some of them
constexpr uint16_t kProbeInfo = 0x5AA5;

/// Runs a part over a link that is looped back, `rounds` times, each with rings of its own.
/// @param unit of what it tries.
Verdict run_part(Bench& bench, const char* unit, const Bench::Work& part,
                 const pmd::QueuePairConfig& queues = {}, uint32_t rounds = 1) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  for (uint32_t i = 0; i < rounds; ++i) {
    bench.loop(part, queues);
  }
  return {.unit = unit};
}

Verdict run_messages(Bench& bench, const std::vector<MessageTrial>& trials) {
  return run_part(bench, "messages", [&](Exchange& exchange) { try_messages(exchange, trials); });
}

Verdict run_memory(Bench& bench, const char* unit, const Bench::Work& part, bool there = true) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  if (!bench.card().caps().dma) {
    return skip("the card has no DMA queue");
  }
  if (!bench.card().blocks().has_window(0)) {
    return skip("the card has no inbound windows");
  }
  return there ? run_part(bench, unit, part) : skip(std::string("the card has no ") + unit);
}

Verdict test_loop(Bench& bench) {
  std::string wrong = bench.wait_link() ? "" : "the link is down";
  for (uint32_t probe = 1; wrong.empty(); ++probe) {
    try {
      bench.loop([](Exchange& exchange) { exchange.doorbell(kProbeInfo); });
      bench.no_loop.clear();
      bench.tally.add(1);
      return {.unit = "doorbell"};
    } catch (const Fault& fault) {
      if (fault.rc == -ENODEV) {
        throw;
      }
      if (probe == kProbes) {
        wrong = std::string("a doorbell to its own destID did not come back: ") + fault.what();
      }
    }
    if (wrong.empty()) {
      bench.reset();
    }
  }
  bench.no_loop = wrong;
  if (bench.config().must_loop) {
    throw Fault(wrong + "; plug a loop-back, or set the port to loop back");
  }
  return skip("the link is not looped back to this card: " + wrong);
}

Verdict test_doorbells(Bench& bench) {
  return run_part(bench, "doorbells",
                  [&](Exchange& exchange) { try_doorbells(exchange, bench.config().quick); });
}

Verdict test_inline(Bench& bench) {
  const std::vector<MessageTrial> trials = inline_trials(bench.card().caps(), bench.config().quick);
  return bench.no_loop.empty() && trials.empty() ? skip("the card takes no inline bytes")
                                                 : run_messages(bench, trials);
}

Verdict test_messages(Bench& bench) {
  return run_messages(bench, length_trials(bench.config().quick));
}

Verdict test_segments(Bench& bench) {
  return run_messages(bench, segment_trials());
}

Verdict test_bursts(Bench& bench) {
  pmd::QueuePairConfig queues;
  queues.tx_log2 = queues.shared_log2 = End::kBurstLog2;
  queues.start_index = UINT32_MAX - End::kBurstEntries;  // indices wrap in the second burst
  return run_part(
      bench, "messages",
      [&](Exchange& exchange) { try_bursts(exchange, bench.config().quick ? 8 : 256); }, queues);
}

Verdict test_dedicated(Bench& bench) {
  // Sizes that need no alignment would be thousands for each queue.
  const uint32_t stride = bench.config().quick ? 1024 : 64;
  uint32_t queue = 0;
  return run_part(
      bench, "entries", [&](Exchange& exchange) { try_dedicated(exchange, queue++, stride); }, {},
      regs::kDedicatedQueues);
}

Verdict test_memory(Bench& bench) {
  return run_memory(bench, "reads and writes",
                    [&](Exchange& exchange) { try_memory(exchange, bench.config().quick); });
}

Verdict test_atomics(Bench& bench) {
  return run_memory(bench, "atomic operations", try_atomics, bench.card().caps().atomics);
}

Verdict test_peer(Bench& bench) {
  if (!bench.config().has_peer) {
    return skip("no peer named: --peer DESTID");
  }
  const auto work = [&](Exchange& exchange) {
    pmd::TxMessage message{.iova = bench.memory().iova,
                           .cookie = 0,
                           .dest_id = bench.config().peer,
                           .length_bytes = 0,
                           .mbox = 0,
                           .flags = 0};
    for (const uint32_t len : some_lengths()) {
      message.length_bytes = static_cast<uint16_t>(len);
      message.mbox = static_cast<uint8_t>(len % regs::kMultiMailboxes);
      exchange.send(message, "message of " + std::to_string(len) + " bytes");
      bench.tally.add(1);
    }
    message.length_bytes = 0;
    message.mbox = 0;
    message.flags = pmd::TxFlags::kDoorbell;
    for (uint32_t bit = 0; bit < 16; ++bit) {
      message.info = uint64_t{1} << bit;
      exchange.send(message, "doorbell");
      bench.tally.add(1);
    }
  };
  pmd::QueuePairConfig queues;
  queues.rings = pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kEvent);
  try {
    bench.loop(work, queues);
  } catch (const Fault& fault) {
    throw Fault(std::string(fault.what()) + "; does the peer run a program that receives?",
                fault.rc);
  }
  return {.reason = "all delivered; their bytes are for the peer to look at",
          .unit = "messages and doorbells"};
}

constexpr std::array kSteps = {
    Step{"registers", "patterns in words that the card does not look at", test_registers},
    Step{"rings", "every ring starts and stops", test_rings},
    Step{"link", "the port trains, at its full width", test_link},
    Step{"prbs", "test patterns of the link, where the card has them", test_prbs},
    Step{"loop-back", "whether the card hears itself", test_loop},
    Step{"doorbells", "each bit of the information", test_doorbells},
    Step{"inline", "messages inside of the descriptor, all mailboxes", test_inline},
    Step{"messages", "messages of all sizes", test_messages},
    Step{"bursts", "rings that are full, messages of all of them at once", test_bursts},
    Step{"segments", "all segment sizes", test_segments},
    Step{"dedicated", "all dedicated queues, all sizes of entries", test_dedicated},
    Step{"memory", "NWRITE, NWRITE_R, SWRITE, NREAD: sizes and alignments", test_memory},
    Step{"atomics", "atomic operations of 1, 2 and 4 bytes", test_atomics},
    Step{"maintenance", "CARs, local and over the link", test_maintenance},
    Step{"interrupts", "a vector for each ring", test_interrupts},
    Step{"peer", "messages and doorbells to --peer", test_peer},
};

}  // namespace

const char* name(Outcome outcome) {
  static constexpr std::array kNames = {"pass", "fail", "skipped"};
  return kNames[static_cast<size_t>(outcome)];
}

std::span<const Step> steps() {
  return kSteps;
}

std::vector<StepReport> run(pmd::Bus& bus, const Config& config, const Progress& progress) {
  std::vector<StepReport> reports;
  Bench bench(bus, config, progress);
  bool gone = false;
  using Clock = std::chrono::steady_clock;
  for (const Step& step : kSteps) {
    bench.begin(step.name);
    const auto begin = Clock::now();
    Verdict verdict;
    if (gone) {
      verdict = skip("the card is gone");
    } else {
      try {
        bench.reset();
        verdict = step.run(bench);
        verdict.done = bench.tally.done;
        verdict.bytes = bench.tally.bytes;
      } catch (const Fault& fault) {
        gone = fault.rc == -ENODEV;
        verdict = {.outcome = Outcome::kFail, .reason = fault.what()};
      }
      if (!gone && bench.is_gone()) {  // while the step looked elsewhere
        gone = true;
        verdict = {.outcome = Outcome::kFail, .reason = kGone};
      }
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    reports.push_back({step.name, std::move(verdict), took.count()});
  }
  return reports;
}

int try_all(const End& from, const End& to, std::string* wrong) {
  constexpr uint32_t kRounds = 8;
  constexpr uint32_t kEntryStep = regs::kSegmentBytesMax;
  const pmd::Caps& caps = from.card->caps();
  Tally tally;
  Exchange exchange(from, to, {.patience_ms = 5000, .doubts_max = 8}, tally);
  try {
    try_messages(exchange, length_trials(false));
    try_messages(exchange, inline_trials(caps, false));
    try_doorbells(exchange, true);
    if (caps.ring_log2_min <= End::kBurstLog2) {
      try_bursts(exchange, kRounds);
    }
    for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
      try_dedicated(exchange, i, kEntryStep);
    }
    if ((from.pair->rings() & pmd::ring_bit(regs::Ring::kDma)) != 0 && to.pair->has_windows()) {
      try_memory(exchange, true);
    }
  } catch (const Fault& fault) {
    *wrong = fault.what();
    return fault.rc;
  }
  return 0;
}

}  // namespace rio::selftest
