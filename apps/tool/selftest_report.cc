#include "apps/tool/selftest_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "pmd/dev/card.hpp"

namespace rio::tool {
namespace {

using selftest::Outcome;
using selftest::StepReport;
using selftest::Verdict;

std::string amount(const Verdict& verdict) {
  if (verdict.done == 0) {
    return "";
  }
  std::string text = std::to_string(verdict.done) + " " + verdict.unit;
  if (verdict.bytes != 0) {
    text += ", " + std::to_string(verdict.bytes) + " bytes compared";
  }
  return text;
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f s", value);
  return text;
}

std::string version_text(uint32_t word) {
  using regs::id::HwVersion;
  return std::to_string(HwVersion::major.get(word)) + "." +
         std::to_string(HwVersion::minor.get(word)) + "." +
         std::to_string(HwVersion::patch.get(word));
}

/// Where and on what it is run; zeros where the card does not answer.
void describe(pmd::Bus& bus, const selftest::Config& config, SelftestReport* report) {
  pmd::Mmio bar = bus.bar();
  const uint32_t version = bar.read32(regs::id::hw_version());
  char host[256] = "?";
  (void)gethostname(host, sizeof(host) - 1);
  report->date = utc_text();
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

uint32_t SelftestReport::count(Outcome outcome) const {
  return static_cast<uint32_t>(
      std::count_if(steps.begin(), steps.end(),
                    [=](const StepReport& step) { return step.verdict.outcome == outcome; }));
}

int SelftestReport::exit_code() const {
  return count(Outcome::kFail) != 0 ? kExitFound : kExitOk;
}

Json SelftestReport::json() const {
  Json list = Json::array();
  for (const StepReport& step : steps) {
    list.push_back({{"step", step.step},
                    {"outcome", name(step.verdict.outcome)},
                    {"reason", step.verdict.reason},
                    {"done", step.verdict.done},
                    {"unit", step.verdict.unit},
                    {"bytes_compared", step.verdict.bytes},
                    {"seconds", step.seconds}});
  }
  return {{"report", "riopmd-selftest"},
          {"version", 1},
          {"date", date},
          {"host", host},
          {"card", card},
          {"emulated", emulated},
          {"gateware", gateware},
          {"gateware_build", build},
          {"tool", tool},
          {"seed", seed},
          {"quick", quick},
          {"peer", peer.empty() ? Json() : Json(peer)},
          {"passed", count(Outcome::kPass)},
          {"failed", count(Outcome::kFail)},
          {"skipped", count(Outcome::kSkipped)},
          {"steps", list}};
}

std::string SelftestReport::text() const {
  char head[256];
  std::snprintf(head, sizeof(head), "build %" PRIu32 ", rio-tool %s, seed %" PRIu64 "%s\n", build,
                tool.c_str(), seed, quick ? ", quick" : "");
  std::string out = "Selftest of " + card + (emulated ? " (an emulated card)" : "") + " on " +
                    host + ", " + date + "\nGateware " + gateware + ", " + head;
  TextTable table({"step", "outcome", "time", "what"});
  for (const StepReport& step : steps) {
    std::string what = amount(step.verdict);
    what += (what.empty() || step.verdict.reason.empty() ? "" : "; ") + step.verdict.reason;
    table.add({step.step, name(step.verdict.outcome), seconds(step.seconds), what});
  }
  return out + "\n" + table.text() + "\n" + std::to_string(count(Outcome::kPass)) + " passed, " +
         std::to_string(count(Outcome::kFail)) + " failed, " +
         std::to_string(count(Outcome::kSkipped)) + " skipped\n";
}

SelftestReport run_selftest(pmd::Bus& bus, const selftest::Config& config,
                            const selftest::Progress& progress) {
  SelftestReport report;
  describe(bus, config, &report);
  report.steps = selftest::run(bus, config, progress);
  return report;
}

}  // namespace rio::tool
