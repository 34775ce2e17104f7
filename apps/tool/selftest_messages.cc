// Steps with messages and doorbells.
#include <algorithm>
#include <vector>

#include "apps/tool/selftest_loop.hpp"

namespace rio::tool {
namespace {

constexpr uint32_t kProbes = 8;  // a fault may hit some of them
constexpr uint16_t kProbeInfo = 0x5AA5;

/// Lengths around those at which something changes.
std::vector<uint32_t> some_lengths() {
  std::vector<uint32_t> lengths;
  for (uint32_t len = 1; len <= 64; ++len) {
    lengths.push_back(len);
  }
  for (uint32_t edge = regs::kSegmentBytesMax; edge <= regs::kMessageBytesMax;
       edge += regs::kSegmentBytesMax) {
    for (const uint32_t len : {edge - 8, edge - 1, edge, edge + 1}) {
      if (len <= regs::kMessageBytesMax) {
        lengths.push_back(len);
      }
    }
  }
  return lengths;
}

std::vector<uint32_t> all_lengths() {
  std::vector<uint32_t> lengths;
  for (uint32_t len = 1; len <= regs::kMessageBytesMax; ++len) {
    lengths.push_back(len);
  }
  return lengths;
}

/// One doorbell to the card itself. @return as SelftestLoop's.
std::string probe(SelftestBench& bench) {
  SelftestLoop loop(bench);
  std::string wrong = loop.open();
  wrong = wrong.empty() ? loop.doorbell(kProbeInfo) : wrong;
  return wrong.empty() ? loop.close() : wrong;
}

/// All trials through the shared queue.
Verdict run_messages(SelftestBench& bench, const char* step,
                     const std::vector<MessageTrial>& trials) {
  SelftestLoop loop(bench);
  std::string wrong = loop.open();
  uint64_t done = 0;
  uint64_t bytes = 0;
  for (const MessageTrial& trial : trials) {
    wrong = wrong.empty() ? loop.message(trial) : wrong;
    if (!wrong.empty()) {
      return fail(wrong);
    }
    bytes += trial.len_bytes;
    bench.tell(step, ++done, trials.size());
  }
  wrong = loop.close();
  return wrong.empty() ? pass(done, "messages", bytes) : fail(wrong);
}

/// All entries that fit through one dedicated queue.
std::string run_dedicated(SelftestBench& bench, uint32_t index, uint64_t* done, uint64_t* bytes) {
  const uint32_t step = bench.card().caps().dedicated_size_align;
  const auto mbox = static_cast<uint8_t>(index % regs::kMultiMailboxes);
  SelftestLoop loop(bench);
  std::string wrong = loop.open();
  pmd::DedicatedRxQueue* queue = nullptr;
  if (wrong.empty() &&
      loop.pair().open_dedicated(index, bench.config().dest_id, mbox, &queue) != 0) {
    return "dedicated queue " + std::to_string(index) + " cannot be opened";
  }
  // Sizes that need no alignment would be thousands for each queue.
  const uint32_t stride = std::max(step, bench.config().quick ? 1024u : 64u);
  for (uint32_t len = stride; wrong.empty() && len <= regs::kMessageBytesMax; len += stride) {
    wrong = loop.dedicated(*queue, {.number = ++*done, .len_bytes = len, .mbox = mbox});
    *bytes += len;
    bench.tell("dedicated", *done, 0);
  }
  return wrong.empty() ? loop.close() : wrong;
}

}  // namespace

Verdict test_loop(SelftestBench& bench) {
  std::string wrong = bench.wait_link() ? "" : "the link is down";
  bool heard = false;
  for (uint32_t i = 0; i < kProbes && wrong.empty() && !heard; ++i) {
    const std::string what = probe(bench);
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

Verdict test_doorbells(SelftestBench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  SelftestLoop loop(bench);
  std::string wrong = loop.open();
  uint64_t done = 0;
  const uint32_t stride = bench.config().quick ? 0x101 : 1;
  for (uint32_t info = 0; wrong.empty() && info <= 0xFFFF; info += stride) {
    wrong = loop.doorbell(static_cast<uint16_t>(info));
    bench.tell("doorbells", ++done, 0x10000 / stride);
  }
  for (uint32_t bit = 0; wrong.empty() && bit < 16; ++bit, ++done) {
    wrong = loop.doorbell(static_cast<uint16_t>(1u << bit));
  }
  wrong = wrong.empty() ? loop.close() : wrong;
  return wrong.empty() ? pass(done, "doorbells") : fail(wrong);
}

Verdict test_inline(SelftestBench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  const uint32_t most = bench.card().caps().inline_bytes;
  if (most == 0) {
    return skip("the card takes no inline bytes");
  }
  const uint32_t longest = bench.card().caps().wide ? regs::kWideInlineBytes : most;
  std::vector<MessageTrial> trials;
  for (uint32_t len = 1; len <= longest; ++len) {
    for (uint32_t mbox = 0; mbox < regs::kMailboxes; mbox += bench.config().quick ? 21 : 1) {
      trials.push_back({.number = trials.size(),
                        .len_bytes = len,
                        .mbox = static_cast<uint8_t>(mbox),
                        .is_inline = true});
    }
  }
  return run_messages(bench, "inline", trials);
}

Verdict test_messages(SelftestBench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  std::vector<MessageTrial> trials;
  for (const uint32_t len : bench.config().quick ? some_lengths() : all_lengths()) {
    trials.push_back({.number = trials.size(),
                      .len_bytes = len,
                      .mbox = static_cast<uint8_t>(len % regs::kMultiMailboxes)});
  }
  return run_messages(bench, "messages", trials);
}

Verdict test_segments(SelftestBench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  std::vector<MessageTrial> trials;
  for (uint32_t ssize = 8; ssize <= regs::kSegmentBytesMax; ssize *= 2) {
    for (uint32_t segments = 1; segments <= regs::kSegmentsMax; ++segments) {
      // The last segment whole, one byte short, and of one byte.
      for (const uint32_t len :
           {segments * ssize, segments * ssize - 1, (segments - 1) * ssize + 1}) {
        trials.push_back({.number = trials.size(),
                          .len_bytes = len,
                          .ssize_bytes = ssize,
                          .mbox = static_cast<uint8_t>(segments % regs::kMultiMailboxes)});
      }
    }
  }
  return run_messages(bench, "segments", trials);
}

Verdict test_dedicated(SelftestBench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  uint64_t done = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    if (std::string wrong = run_dedicated(bench, i, &done, &bytes); !wrong.empty()) {
      return fail("dedicated queue " + std::to_string(i) + ": " + wrong);
    }
  }
  return pass(done, "entries", bytes);
}

Verdict test_peer(SelftestBench& bench) {
  if (!bench.config().has_peer) {
    return skip("no peer named: --peer DESTID");
  }
  SelftestLoop loop(bench);
  pmd::QueuePairConfig queues;
  queues.rings = pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kEvent);
  std::string wrong = loop.open(queues);
  uint64_t done = 0;
  for (const uint32_t len : some_lengths()) {
    const pmd::TxMessage message{.iova = bench.iova(SelftestBench::kTxPage),
                                 .cookie = len,
                                 .dest_id = bench.config().peer,
                                 .length_bytes = static_cast<uint16_t>(len),
                                 .mbox = static_cast<uint8_t>(len % regs::kMultiMailboxes),
                                 .flags = 0};
    wrong =
        wrong.empty() ? loop.send(message, "message of " + std::to_string(len) + " bytes") : wrong;
    bench.tell("peer", ++done, 0);
  }
  for (uint32_t bit = 0; wrong.empty() && bit < 16; ++bit, ++done) {
    const pmd::TxMessage message{.info = uint64_t{1} << bit,
                                 .cookie = bit,
                                 .dest_id = bench.config().peer,
                                 .length_bytes = 0,
                                 .mbox = 0,
                                 .flags = pmd::TxFlags::kDoorbell};
    wrong = loop.send(message, "doorbell");
  }
  wrong = wrong.empty() ? loop.close() : wrong;
  if (!wrong.empty()) {
    return fail(wrong + "; does the peer run a program that receives?");
  }
  Verdict verdict = pass(done, "messages and doorbells");
  verdict.reason = "all delivered; their bytes are for the peer to look at";
  return verdict;
}

}  // namespace rio::tool
