#include "apps/tool/selftest.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "apps/tool/clock_text.hpp"
#include "base/random.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::tool {
namespace {

using Clock = std::chrono::steady_clock;

// A busy machine may stop an emulated card for a while; a lost response is found all the same.
constexpr uint32_t kResponseTimeoutUs = 1000000;
constexpr uint32_t kRetryLimit = 100000;
constexpr uint32_t kTurnsBetweenLooks = 1024;

constexpr std::array kSteps = {
    SelftestStep{"registers", "patterns in words that the card does not look at", test_registers},
    SelftestStep{"rings", "every ring starts and stops", test_rings},
    SelftestStep{"link", "the port trains, at its full width", test_link},
    SelftestStep{"prbs", "test patterns of the link, where the card has them", test_prbs},
    SelftestStep{"loop-back", "whether the card hears itself", test_loop},
    SelftestStep{"doorbells", "each bit of the information", test_doorbells},
    SelftestStep{"inline", "messages inside of the descriptor, all mailboxes", test_inline},
    SelftestStep{"messages", "messages of all sizes", test_messages},
    SelftestStep{"bursts", "rings that are full, messages of all of them at once", test_bursts},
    SelftestStep{"segments", "all segment sizes", test_segments},
    SelftestStep{"dedicated", "all dedicated queues, all sizes of entries", test_dedicated},
    SelftestStep{"memory", "NWRITE, NWRITE_R, SWRITE, NREAD: sizes and alignments", test_memory},
    SelftestStep{"atomics", "atomic operations of 1, 2 and 4 bytes", test_atomics},
    SelftestStep{"maintenance", "CARs, local and over the link", test_maintenance},
    SelftestStep{"interrupts", "a vector for each ring", test_interrupts},
    SelftestStep{"peer", "messages and doorbells to --peer", test_peer},
};

std::string version_text(uint32_t word) {
  using regs::id::HwVersion;
  return std::to_string(HwVersion::major.get(word)) + "." +
         std::to_string(HwVersion::minor.get(word)) + "." +
         std::to_string(HwVersion::patch.get(word));
}

/// Describe card and program; nothing where the card does not answer.
void describe(pmd::Bus& bus, const SelftestConfig& config, SelftestReport* report) {
  pmd::Mmio bar = bus.bar();
  const uint32_t version = bar.read32(regs::id::hw_version());
  char host[256] = "?";
  (void)gethostname(host, sizeof(host) - 1);
  report->date = utc_now();
  report->host = host;
  report->card = bus.name();
  report->gateware = version_text(version);
  report->emulated = regs::id::HwVersion::model.get(version) != 0;
  report->build = bar.read32(regs::id::build());
  report->tool = RIO_VERSION;
  report->seed = config.seed;
  report->quick = config.quick;
  report->peer = config.has_peer ? std::to_string(config.peer) : "";
}

}  // namespace

SelftestBench::SelftestBench(pmd::Bus& bus, const SelftestConfig& config, Progress progress)
    : bus_(bus), config_(config), progress_(std::move(progress)) {}

SelftestBench::~SelftestBench() {
  if (memory_.va != nullptr && !leave_memory_) {
    bus_.dma_free(memory_);
  }
}

std::string SelftestBench::reset() {
  card_.reset();
  pmd::CardConfig config;
  config.dest_ids = {config_.dest_id};
  config.response_timeout_us = kResponseTimeoutUs;
  config.receive_timeout_us = 2 * kResponseTimeoutUs;
  config.retry_limit = kRetryLimit;
  config.dest_id_size = config_.dest_id > 0xFFFF ? 2 : 1;
  if (const int rc = pmd::Card::open(bus_, config, &card_); rc != 0) {
    gone = rc == -ENODEV;
    return std::string("the card cannot be reset: ") + std::strerror(-rc);
  }
  if (memory_.va == nullptr) {
    if (const int rc = bus_.dma_alloc(size_t{kPages} * kPageBytes, kPageBytes, &memory_); rc != 0) {
      return std::string("no memory that the card can reach: ") + std::strerror(-rc);
    }
  }
  return "";
}

std::string SelftestBench::open(const pmd::QueuePairConfig& queues,
                                std::unique_ptr<pmd::QueuePair>* out) {
  const int rc = card_->open_queue_pair(0, queues, out);
  gone = gone || rc == -ENODEV;
  return rc == 0 ? "" : std::string("queue pair 0 cannot be opened: ") + std::strerror(-rc);
}

std::string SelftestBench::close(std::unique_ptr<pmd::QueuePair> pair) {
  const int rc = pair->stop();
  gone = gone || rc == -ENODEV;
  leave_memory_ = leave_memory_ || (rc != 0 && rc != -ENODEV);
  return rc == 0 ? "" : std::string("the rings do not stop: ") + std::strerror(-rc);
}

std::string SelftestBench::wait(const std::string& what,
                                const std::function<bool(std::string*)>& poll) {
  const pmd::PollHook hook = bus_.poll_hook(0);
  const auto end = Clock::now() + std::chrono::milliseconds(config_.patience_ms);
  std::string wrong;
  for (uint32_t turn = 1;; ++turn) {
    if (poll(&wrong) || !wrong.empty()) {
      return wrong;
    }
    hook();
    if (hook.fn == nullptr) {
      sched_yield();  // a thread of the card's may want this CPU
    }
    if (turn % kTurnsBetweenLooks != 0) {
      continue;
    }
    if (card_->gone()) {
      gone = true;
      return "the card is gone (its magic reads all ones) while waiting for " + what;
    }
    if (Clock::now() > end) {
      return what + " did not come within " + std::to_string(config_.patience_ms) + " ms";
    }
  }
}

bool SelftestBench::wait_link() {
  if (!card_->blocks().has_port()) {
    return true;
  }
  pmd::Waiter waiter(bus_.poll_hook(0), config_.link_timeout_ms);
  bool up = card_->link().up;
  while (!up && !card_->gone() && waiter.pause()) {
    up = card_->link().up;
  }
  gone = gone || card_->gone();
  return up;
}

void SelftestBench::tell(const char* step, uint64_t done, uint64_t total) {
  if (progress_) {
    progress_(step, done, total);
  }
}

uint8_t* SelftestBench::va(uint32_t page) const {
  return static_cast<uint8_t*>(memory_.va) + size_t{page} * kPageBytes;
}

uint64_t SelftestBench::iova(uint32_t page) const {
  return memory_.iova + uint64_t{page} * kPageBytes;
}

uint8_t SelftestBench::byte(uint64_t number, uint32_t at) const {
  // A 64-bit value for each eight bytes.
  const uint64_t place = number << 12 | at >> 3;
  return static_cast<uint8_t>(base::mix64(config_.seed + place * base::kRandomStep) >>
                              (8 * (at & 7)));
}

void SelftestBench::fill(uint8_t* bytes, uint32_t len_bytes, uint64_t number) const {
  for (uint32_t at = 0; at < len_bytes; ++at) {
    bytes[at] = byte(number, at);
  }
}

std::span<const SelftestStep> selftest_steps() {
  return kSteps;
}

SelftestReport run_selftest(pmd::Bus& bus, const SelftestConfig& config, const Progress& progress) {
  SelftestReport report;
  describe(bus, config, &report);
  SelftestBench bench(bus, config, progress);
  for (const SelftestStep& step : kSteps) {
    bench.tell(step.name, 0, 0);
    const auto begin = Clock::now();
    Verdict verdict;
    if (bench.gone) {
      verdict = skip("the card is gone");
    } else if (std::string wrong = bench.reset(); !wrong.empty()) {
      verdict = fail(wrong);
    } else {
      verdict = step.run(bench);
      if (!bench.gone && bench.card().gone()) {  // while the step looked elsewhere
        bench.gone = true;
        verdict = fail("the card is gone (its magic reads all ones)");
      }
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    report.steps.push_back({step.name, std::move(verdict), took.count()});
  }
  return report;
}

}  // namespace rio::tool
