#include "apps/tool/selftest_report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "apps/tool/text_table.hpp"

namespace rio::tool {
namespace {

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

}  // namespace

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "fail";
    case Outcome::kSkipped:
      break;
  }
  return "skipped";
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

}  // namespace rio::tool
