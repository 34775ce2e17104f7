// rio-tool selftest: does the card do what it should, every byte of it?
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <random>

#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/selftest_report.hpp"

namespace rio::tool {
namespace {

struct Options {
  CardOption card;
  selftest::Config test;
  CLI::Option* seed = nullptr;
  CLI::Option* peer = nullptr;
  std::string report;
  bool force = false;
};

/// Where the test is, on stderr: a line that is written over on a terminal, else one for each step.
class Ticker {
 public:
  void operator()(const char* step, uint64_t done, uint64_t total) {
    if (done == 0) {
      begin(step);
    } else if (terminal_ && done % kTellEvery == 0) {
      std::fprintf(stderr, "\r\033[K%s: %" PRIu64, step, done);
      if (total != 0) {
        std::fprintf(stderr, " of %" PRIu64, total);
      }
    }
  }
  void end() const {
    if (terminal_) {
      std::fputs("\r\033[K", stderr);
    }
  }

 private:
  static constexpr uint64_t kTellEvery = 128;

  void begin(const char* step) {
    ++number_;
    std::fprintf(stderr, "%s[%zu/%zu] %s%s", terminal_ ? "\r\033[K" : "", number_,
                 selftest::steps().size(), step, terminal_ ? "" : "\n");
  }

  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  size_t number_ = 0;
};

int plan(const GlobalOptions& context, const std::string& card) {
  Json steps = Json::array();
  TextTable table({"step", "what would be tried on " + card});
  for (const selftest::Step& step : selftest::steps()) {
    steps.push_back({{"step", step.name}, {"what", step.help}});
    table.add({step.name, step.help});
  }
  return print_result(context, {{"card", card}, {"dry_run", true}, {"steps", steps}}, table.text());
}

int run(const GlobalOptions& context, Options& options) {
  std::string name;
  if (options.card.resolve(context, &name) != 0) {
    return kExitFailed;
  }
  if (context.dry_run) {
    return plan(context, name);
  }
  options.test.has_peer = options.peer->count() != 0;
  if (options.seed->count() == 0) {
    options.test.seed = std::random_device{}();
  }
  if (!options.force && refuse_used(context, name, "give --force, which resets the card") != 0) {
    return kExitFailed;
  }
  std::unique_ptr<pmd::Bus> bus;
  if (open_card_bus(context, name, &bus) != 0) {
    return kExitFailed;  // the log has said why
  }
  Ticker ticker;
  const SelftestReport report = run_selftest(*bus, options.test, std::ref(ticker));
  ticker.end();
  print_result(context, report.json(), report.text());
  if (!options.report.empty() &&
      (write_file(options.report + ".txt", report.text()) != 0 ||
       write_file(options.report + ".json", json_text(report.json(), 2) + "\n") != 0)) {
    return kExitFailed;
  }
  return report.exit_code();
}

}  // namespace

void add_selftest(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "selftest", "Test an unused card: it is reset, and every byte is compared",
      "Messages, doorbells and memory are tried over a link that is looped back (a loop-back\n"
      "module, or emu:loop); without one they are skipped. Exit code 3: a step failed.\n\n"
      "Examples\n"
      "  rio-tool selftest --card emu:loop --quick\n"
      "  rio-tool selftest --card 0000:03:00.0 --loop --report card7\n"
      "  rio-tool selftest --peer 0x21",
      run);
  options.card.add_to(command);
  command.add_flag("--quick", options.test.quick, "Fewer sizes, queue pair 0 only");
  options.peer = command.add_option("--peer", options.test.peer,
                                    "destID of a node that receives: send to it, too");
  command.add_option("--destid", options.test.dest_id, "destID of the card while it is tested")
      ->capture_default_str();
  command.add_flag("--loop", options.test.must_loop,
                   "The link is looped back: fail, rather than skip, if nothing comes back");
  options.seed = command.add_option("--seed", options.test.seed,
                                    "Seed of the bytes that are sent; random if left out");
  command.add_option("--report", options.report, "Write FILE.txt and FILE.json, to be kept")
      ->type_name("FILE");
  command.add_flag("--force", options.force, "Even if rings run: their program has died");
}

}  // namespace rio::tool
