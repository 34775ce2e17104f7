#include "pmd/selftest/selftest.hpp"

#include <array>
#include <chrono>

#include "pmd/selftest/bench.hpp"

namespace rio::selftest {
namespace {

using Clock = std::chrono::steady_clock;

struct Step {
  const char* name;
  const char* help;
  Verdict (*run)(Bench& bench);
};

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

Verdict pass(uint64_t done, std::string unit, uint64_t bytes) {
  return {Outcome::kPass, "", done, std::move(unit), bytes};
}

Verdict fail(std::string reason) {
  return {Outcome::kFail, std::move(reason), 0, "", 0};
}

Verdict skip(std::string reason) {
  return {Outcome::kSkipped, std::move(reason), 0, "", 0};
}

std::vector<StepName> steps() {
  std::vector<StepName> names;
  for (const Step& step : kSteps) {
    names.push_back({step.name, step.help});
  }
  return names;
}

std::vector<StepReport> run(pmd::Bus& bus, const Config& config, const Progress& progress) {
  std::vector<StepReport> reports;
  Bench bench(bus, config, progress);
  for (const Step& step : kSteps) {
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
    reports.push_back({step.name, std::move(verdict), took.count()});
  }
  return reports;
}

}  // namespace rio::selftest
