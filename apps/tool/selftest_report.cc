#include "apps/tool/selftest_report.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/formatted.hpp"
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

/// Where and on what it is run; zeros where the card does not answer.
Json describe(pmd::Bus& bus, const selftest::Config& config) {
  using regs::id::HwVersion;
  pmd::Mmio bar = bus.bar();
  const uint32_t version = bar.read32(regs::id::hw_version());
  char host[256] = "?";
  (void)gethostname(host, sizeof(host) - 1);
  return {
      {"report", "riopmd-selftest"},
      {"version", 1},
      {"date", utc_text()},
      {"host", host},
      {"card", bus.name()},
      {"emulated", HwVersion::model.get(version) != 0},
      {"gateware", base::formatted("%u.%u.%u", HwVersion::major.get(version),
                                   HwVersion::minor.get(version), HwVersion::patch.get(version))},
      {"gateware_build", bar.read32(regs::id::build())},
      {"tool", RIO_VERSION},
      {"seed", config.seed},
      {"quick", config.quick},
      {"peer", config.has_peer ? Json(std::to_string(config.peer)) : Json()}};
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
                    {"outcome", selftest::name(step.verdict.outcome)},
                    {"reason", step.verdict.reason},
                    {"done", step.verdict.done},
                    {"unit", step.verdict.unit},
                    {"bytes_compared", step.verdict.bytes},
                    {"seconds", step.seconds}});
  }
  Json out = about;
  out["passed"] = count(Outcome::kPass);
  out["failed"] = count(Outcome::kFail);
  out["skipped"] = count(Outcome::kSkipped);
  out["steps"] = list;
  return out;
}

std::string SelftestReport::text() const {
  const auto said = [this](const char* key) {
    const Json& value = about.at(key);
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::string out = "Selftest of " + said("card") +
                    (about.at("emulated") == true ? " (an emulated card)" : "") + " on " +
                    said("host") + ", " + said("date") + "\nGateware " + said("gateware") +
                    ", build " + said("gateware_build") + ", rio-tool " + said("tool") + ", seed " +
                    said("seed") + (about.at("quick") == true ? ", quick" : "") + "\n";
  TextTable table({"step", "outcome", "time", "what"});
  for (const StepReport& step : steps) {
    std::string what = amount(step.verdict);
    what += (what.empty() || step.verdict.reason.empty() ? "" : "; ") + step.verdict.reason;
    table.add({step.step, selftest::name(step.verdict.outcome),
               base::formatted("%.2f s", step.seconds), what});
  }
  return out + "\n" + table.text() + "\n" + std::to_string(count(Outcome::kPass)) + " passed, " +
         std::to_string(count(Outcome::kFail)) + " failed, " +
         std::to_string(count(Outcome::kSkipped)) + " skipped\n";
}

SelftestReport run_selftest(pmd::Bus& bus, const selftest::Config& config,
                            const selftest::Progress& progress) {
  Json about = describe(bus, config);  // before the card is reset
  return {std::move(about), selftest::run(bus, config, progress)};
}

}  // namespace rio::tool
